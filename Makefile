# make release: one binary a platform in dist/, with checksums. A commit gives the same bytes wherever it is built
# with the same Go, as long as nothing in the tree differs from it (-version says so otherwise: +dirty).

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
FLAGS     := -trimpath -buildvcs=true -ldflags "-s -w -buildid="

.PHONY: release clean $(PLATFORMS)

release: $(PLATFORMS)
	cd dist && sha256sum authhub-* > SHA256SUMS

$(PLATFORMS): os = $(word 1,$(subst /, ,$@))
$(PLATFORMS): arch = $(word 2,$(subst /, ,$@))
$(PLATFORMS): clean
	CGO_ENABLED=0 GOOS=$(os) GOARCH=$(arch) GOFLAGS= go build $(FLAGS) -o dist/authhub-$(os)-$(arch)$(if $(filter windows,$(os)),.exe) .

clean:
	rm -rf dist
