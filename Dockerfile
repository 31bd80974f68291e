# patsat on Debian with PoCL, an OpenCL device that every CPU has.
#
#     docker build -t patsat .
#     docker run --rm patsat
#     docker run --rm -v "$PWD":/work patsat patsat check /work/program.pat
#
# Without a command, the container optimises and runs programs/asum.pat, as `make run` does.

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /patsat
COPY . .
RUN cargo build --release --locked

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ocl-icd-libopencl1 pocl-opencl-icd \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /patsat/target/release/patsat /usr/local/bin/patsat
COPY --from=build /patsat/programs /usr/local/share/patsat/programs
WORKDIR /usr/local/share/patsat
CMD patsat gen /tmp/xs.npy --shape 16777216 --type f32 --how normal --seed 1 \
    && patsat optimize programs/asum.pat --input xs=/tmp/xs.npy --device portable \
    && patsat run programs/asum.pat --input xs=/tmp/xs.npy --device portable --verify
