//! The programs of other benchmarks on small inputs, compared with the results of `programs/reference.py`.

use super::futhark::compare;

/// Program, relative error.
const PROGRAMS: [(&str, f64); 23] = [
    ("futhark/cfd", 1e-5),
    ("futhark/crystal", 0.0),
    ("futhark/hotspot", 3e-6),
    ("futhark/lavamd", 1e-5),
    ("futhark/mandelbrot", 0.0),
    ("futhark/nbody", 1e-5),
    ("futhark/nn", 1e-5),
    ("futhark/pathfinder", 0.0),
    ("futhark/srad", 1e-4),
    ("lift/acoustic", 1e-5),
    ("lift/gaussian5x5", 1e-5),
    ("lift/gradient", 1e-5),
    ("lift/hotspot3d", 3e-6),
    ("lift/jacobi2d5", 1e-5),
    ("lift/jacobi2d9", 1e-5),
    ("lift/jacobi3d13", 1e-5),
    ("lift/jacobi3d7", 1e-5),
    ("skelcl/canny", 0.0),
    ("skelcl/fdtd", 1e-5),
    ("skelcl/gaussian_blur", 1e-5),
    ("skelcl/osem", 1e-4),
    ("skelcl/pi", 1e-6),
    ("skelcl/sobel", 1e-5),
];

/// The interpreter's results are those of another implementation.
#[test]
fn results_of_another_implementation() {
    for (program, relative) in PROGRAMS {
        let (_, name) = program.split_once('/').expect("a folder");
        compare("eval", program, name, relative);
    }
}

/// No program of these folders lacks a test.
#[test]
fn every_program_has_one() {
    for folder in ["futhark", "lift", "skelcl"] {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
        for file in std::fs::read_dir(format!("{root}/{folder}")).expect("a folder") {
            let path = file.expect("a file").path();
            let name = path.file_stem().expect("a name").display().to_string();
            let published = format!("\"{name}\"");
            let tested = PROGRAMS.iter().any(|(p, _)| *p == format!("{folder}/{name}"))
                || folder == "futhark" && include_str!("futhark.rs").contains(&published);
            assert!(tested || path.extension().is_none_or(|e| e != "pat"), "{folder}/{name}");
        }
    }
}
