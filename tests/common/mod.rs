//! Helpers that several tests share.

use patsat::device::{Capabilities, DeviceInfo, DeviceKind};

/// The allocator of the command line: the system's takes a quarter of the time of a search.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Returns a fictitious device, so that the code generated for it depends on no driver.
pub fn device(kind: DeviceKind) -> DeviceInfo {
    let gpu = kind == DeviceKind::Gpu;
    DeviceInfo {
        index: 0,
        platform: "written down".into(),
        name: "written down".into(),
        vendor: String::new(),
        driver: "0".into(),
        opencl_version: "OpenCL 1.2".into(),
        kind,
        compute_units: if gpu { 100 } else { 4 },
        max_work_group_size: 1024,
        max_work_item_sizes: [1024; 3],
        local_mem_bytes: 32 << 10,
        local_mem_dedicated: gpu,
        global_mem_bytes: 1 << 33,
        max_alloc_bytes: 1 << 31,
        cache_bytes: 1 << 22,
        vector_width_f32: 8,
        fp64: true,
        fp16: false,
        extensions: vec![],
        capabilities: Capabilities::default(),
    }
}
