# The hub in an image that holds nothing else: no shell, no user but 65532, state in /data.
#
#   docker build -t authhub .
#   docker run --rm -p 127.0.0.1:8080:8080 authhub
#   docker run --rm -p 127.0.0.1:8080:8080 -e AUTHHUB_LAB_KEY=KEY-OF-16-RANDOM-BYTES authhub -ephemeral -lab
#
# .ci/image makes the same tree without a container engine, starts it in a chroot and checks its health.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -buildid=" -o /root/authhub . && mkdir /root/data

FROM scratch
COPY --from=build /root/authhub /authhub
COPY --from=build --chown=65532:65532 /root/data /data
# -ephemeral keeps its files in a temporary folder, and there is no /tmp here.
ENV TMPDIR=/data
VOLUME /data
EXPOSE 8080
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=6s --start-period=5s CMD ["/authhub", "-check", "http://127.0.0.1:8080"]
ENTRYPOINT ["/authhub", "-addr", "0.0.0.0:8080"]
CMD ["-dir", "/data"]
