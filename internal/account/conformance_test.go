package account_test

import (
	"log/slog"
	"testing"

	"authhub/internal/account"
	"authhub/internal/account/accounttest"
	"authhub/internal/disk/disktest"
)

// TestMemory and TestJournal hold the embedded store to what every store promises.
func TestMemory(t *testing.T) {
	t.Parallel()
	accounttest.Run(t, func(t *testing.T, seeds []*account.User) accounttest.Backend {
		s, err := account.NewMemory(seeds)
		if err != nil {
			t.Fatal(err)
		}
		return accounttest.Backend{Stores: []account.Store{s}}
	})
}

func TestJournal(t *testing.T) {
	t.Parallel()
	accounttest.Run(t, func(t *testing.T, seeds []*account.User) accounttest.Backend {
		d := disktest.New("journal", nil)
		open := func() []account.Store {
			s, err := account.Open(d, "journal", seeds, slog.New(slog.NewTextHandler(t.Output(), nil)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return []account.Store{s}
		}
		return accounttest.Backend{Stores: open(), Kill: func(*testing.T) []account.Store {
			d = d.AfterPowerCut(disktest.Survival{})
			return open()
		}}
	})
}
