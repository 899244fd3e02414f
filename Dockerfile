# The hub in an image that holds nothing else: no shell, no user but 65532, state in /authhub-data.
#
#   docker build -t authhub .
#   docker run --rm -p 127.0.0.1:8080:8080 authhub
#   docker run --rm -p 127.0.0.1:8080:8080 -e AUTHHUB_LAB_KEY=KEY-OF-16-RANDOM-BYTES authhub -ephemeral -lab
#
# .ci/image makes the same tree without a container engine, starts it in a chroot and checks its health.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w -buildid=" -o /root/authhub . && mkdir /root/data

FROM scratch
COPY --from=build /root/authhub /authhub
COPY --from=build --chown=65532:65532 /root/data /authhub-data
# Where there is no command line, as with service containers, AUTHHUB_EPHEMERAL=true and the like do the same.
# -ephemeral keeps its files in a temporary folder, and there is no /tmp here.
ENV AUTHHUB_ADDR=0.0.0.0:8080 TMPDIR=/authhub-data
VOLUME /authhub-data
EXPOSE 8080
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=6s --start-period=5s CMD ["/authhub", "-check", "http://127.0.0.1:8080"]
ENTRYPOINT ["/authhub"]
