# make release: one binary a platform in dist/, with checksums, and the npm packages in dist/npm. A commit gives the same
# binaries wherever it is built with the same Go, as long as nothing in the tree differs from it (-version says so
# otherwise: +dirty). The packages have the version of the commit's tag; make binaries needs no npm.

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
FLAGS     := -trimpath -buildvcs=true -ldflags "-s -w -buildid="

VERSION   = $(or $(patsubst v%,%,$(shell git describe --tags --exact-match --match 'v*' 2>/dev/null)),0.0.0-dev)

.PHONY: release binaries clean $(PLATFORMS)

release: binaries
	npm/pack $(VERSION)

binaries: $(PLATFORMS)
	cd dist && sha256sum authhub-* > SHA256SUMS

$(PLATFORMS): os = $(word 1,$(subst /, ,$@))
$(PLATFORMS): arch = $(word 2,$(subst /, ,$@))
$(PLATFORMS): clean
	CGO_ENABLED=0 GOOS=$(os) GOARCH=$(arch) GOFLAGS= go build $(FLAGS) -o dist/authhub-$(os)-$(arch)$(if $(filter windows,$(os)),.exe) .

clean:
	rm -rf dist
