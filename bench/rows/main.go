// Command rows writes readings to measure runs with: a reading a minute at each of 20 stations, pH wandering around
// 7.5. With -alerts every fourteenth reading is outside the band, so that it opens an alert and the station's next
// reading closes it. With -read it reads such a file as a program with encoding/csv and time.Parse would, and prints
// the seconds.
package main

import (
	"bufio"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

const stations = 20

func main() {
	n := flag.Int("n", 5_000_000, "rows")
	alerts := flag.Bool("alerts", false, "with many alerts")
	read := flag.String("read", "", "file to read")
	flag.Parse()
	if *read != "" {
		start := time.Now()
		if err := readRows(*read); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.2f\n", time.Since(start).Seconds())
		return
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	writeRows(out, *n, *alerts)
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

func writeRows(out *bufio.Writer, n int, alerts bool) {
	fmt.Fprintln(out, "time,station,ph")
	rng := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	var offset [stations]float64
	for i := range n {
		station := i % stations
		if station == 0 && i > 0 {
			at = at.Add(time.Minute)
		}
		offset[station] += 0.03*rng.NormFloat64() - 0.01*offset[station]
		ph := 7.5 + offset[station]
		if alerts && i%14 == 0 {
			ph = 9
		}
		b := at.AppendFormat(out.AvailableBuffer(), time.RFC3339)
		b = append(b, ",p"...)
		b = strconv.AppendInt(b, int64(10+station), 10)
		b = append(b, ',')
		b = strconv.AppendFloat(b, ph, 'f', 2, 64)
		out.Write(append(b, '\n'))
	}
}

// readRows does what the peers did: count, least, largest and mean a station, and hourly means.
func readRows(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	type sums struct {
		n                int
		sum, least, most float64
	}
	byStation, byHour := map[string]*sums{}, map[string]map[int64]*sums{}
	records := csv.NewReader(bufio.NewReaderSize(f, 1<<20))
	records.ReuseRecord = true
	if _, err := records.Read(); err != nil {
		return err
	}
	for {
		record, err := records.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		at, err := time.Parse(time.RFC3339, record[0])
		if err != nil {
			return err
		}
		ph, err := strconv.ParseFloat(record[2], 64)
		if err != nil {
			return err
		}
		s := byStation[record[1]]
		if s == nil {
			s = &sums{least: ph, most: ph}
			name := string([]byte(record[1]))
			byStation[name], byHour[name] = s, map[int64]*sums{}
		}
		s.n, s.sum, s.least, s.most = s.n+1, s.sum+ph, min(s.least, ph), max(s.most, ph)
		hours := byHour[record[1]]
		h := hours[at.Unix()/3600]
		if h == nil {
			h = new(sums)
			hours[at.Unix()/3600] = h
		}
		h.n, h.sum = h.n+1, h.sum+ph
	}
}
