//! These tests run on the first device; on the test machine, that is PoCL.

use super::*;
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs, Slot};
use crate::opencl::plan::{Arg, Buffer, Control, GOES_ON_WORDS, Launch, Role, Scalar};

fn scal(n: usize, local: usize) -> HostPlan {
    let buffer =
        |name: &str, role| Buffer { name: name.into(), elem: ScalarType::F32, len: n, role };
    HostPlan {
        source: "kernel void k(global const float *x, global float *y, float a) {
                   size_t i = get_global_id(0); y[i] = a * x[i]; }"
            .into(),
        options: String::new(),
        buffers: vec![buffer("x", Role::Input("x".into(), 0)), buffer("y", Role::Output(0))],
        scalars: vec![Scalar { param: "a".into(), component: 0, ty: ScalarType::F32 }],
        launches: vec![Launch {
            kernel: "k".into(),
            args: vec![Arg::Buffer(0), Arg::Buffer(1), Arg::Scalar(0)],
            global: [n, 1, 1],
            local: [local, 1, 1],
        }],
        control: vec![],
        faults: vec![],
    }
}

fn inputs(n: usize) -> Inputs {
    let mut inputs = Inputs::default();
    let xs: Vec<f32> = (0..n).map(|i| i as f32).collect();
    inputs.insert("x", 0, HostArray::from_slice(&xs));
    inputs.insert("a", 0, HostArray::from_slice(&[2.0f32]));
    inputs
}

fn check(plan: HostPlan, inputs: &Inputs) -> Result<Vec<HostArray>> {
    let rt = Runtime::open(None)?;
    let uploaded = rt.upload(inputs)?;
    let prepared = rt.prepare(rt.build(&Arc::new(plan))?, &uploaded)?;
    Ok(prepared.check(&rt)?.1)
}

fn code(result: Result<Vec<HostArray>>) -> Code {
    result.unwrap_err().0[0].code
}

#[test]
fn runs_checks_and_times() {
    let rt = Runtime::open(None).expect("it opens");
    let uploaded = rt.upload(&inputs(1024)).expect("there is memory");
    let prepared = rt
        .prepare(rt.build(&Arc::new(scal(1024, 64))).expect("it compiles"), &uploaded)
        .expect("there is memory");
    let (_, outputs) = prepared.check(&rt).expect("it runs");
    let ys = outputs[0].to_vec::<f32>().expect("elements of this type");
    assert!(ys.iter().enumerate().all(|(i, y)| *y == 2.0 * i as f32));
    let times = prepared.run(&rt).expect("it runs");
    let [kernel_us] = times.kernels_us[..] else { panic!("one kernel: {times:?}") };
    assert!(0.0 < kernel_us && kernel_us <= times.device_us + 1.0);
    assert!(times.device_us < times.wall_us + 1000.0);
}

#[test]
fn arrays_stay_on_the_device() {
    let rt = Runtime::open(None).expect("it opens");
    let built = rt.build(&Arc::new(scal(1024, 64))).expect("it compiles");
    let x = Slot { param: "x".into(), component: 0 };
    let mut arrays = vec![rt.put(&inputs(1024).0[&x]).expect("there is memory")];
    let factor = Slot { param: "a".into(), component: 0 };
    let two = rt.put(&HostArray::from_slice(&[2.0f32])).expect("there is memory");
    for _ in 0..3 {
        let mut given = rt.upload(&Inputs::default()).expect("there is memory");
        rt.add(&mut given, x.clone(), arrays.last().expect("one")).expect("it is there");
        rt.add(&mut given, factor.clone(), &two).expect("it is there");
        arrays.extend(rt.call(&built, &given).expect("it runs").1);
    }
    // Neither the arguments nor earlier results are changed by a call.
    for (array, power) in arrays.iter().zip([1.0, 2.0, 4.0, 8.0f32]) {
        let ys = rt.get(array).expect("it is read").to_vec::<f32>().expect("floats");
        assert!(ys.iter().enumerate().all(|(i, y)| *y == power * i as f32));
    }
    let other = rt.put(&HostArray::from_slice(&[1.0f32; 3])).expect("there is memory");
    let mut given = rt.upload(&inputs(1024)).expect("there is memory");
    rt.add(&mut given, x, &other).expect("it is there");
    assert_eq!(rt.call(&built, &given).map(drop).unwrap_err().0[0].code, Code::InputShape);
}

#[test]
fn unwritten_outputs_are_poisoned() {
    let mut plan = scal(100, 50);
    plan.launches[0].global[0] = 50;
    let ys = check(plan, &inputs(100)).expect("it runs")[0]
        .to_vec::<f32>()
        .expect("elements of this type");
    assert!(ys[..50].iter().all(|y| !y.is_nan()) && ys[50..].iter().all(|y| y.is_nan()));
}

#[test]
fn zero_sizes_run_nothing() {
    let outputs = check(scal(0, 1), &inputs(0)).expect("it runs");
    assert!(outputs[0].is_empty());
}

#[test]
fn every_scalar_type_arrives() {
    let device = Runtime::open(None).expect("it opens").info().clone();
    for ty in ScalarType::ALL {
        let c = match ty {
            ScalarType::F16 | ScalarType::BF16 => continue, // needs `cl_khr_fp16` for arithmetic; arrays of it are bytes
            ScalarType::F64 if !device.fp64 => continue,
            ScalarType::F32 => "float",
            ScalarType::F64 => "double",
            ScalarType::I8 => "char",
            ScalarType::I16 => "short",
            ScalarType::I32 => "int",
            ScalarType::I64 => "long",
            ScalarType::U8 | ScalarType::Bool => "uchar",
            ScalarType::U16 => "ushort",
            ScalarType::U32 => "uint",
            ScalarType::U64 => "ulong",
        };
        let value = HostArray::from_bytes(
            ty,
            match ty {
                ScalarType::F32 => 1.5f32.to_ne_bytes().to_vec(),
                ScalarType::F64 => 1.5f64.to_ne_bytes().to_vec(),
                _ => [1u8, 0, 0, 0, 0, 0, 0, 0][..ty.bytes()].to_vec(),
            },
        );
        let value = value.expect("the question has an answer");
        let mut inputs = Inputs::default();
        inputs.insert("a", 0, value.clone());
        let plan = HostPlan {
            source: format!("kernel void k({c} a, global {c} *y) {{ y[0] = a; }}"),
            options: String::new(),
            buffers: vec![Buffer { name: "y".into(), elem: ty, len: 1, role: Role::Output(0) }],
            scalars: vec![Scalar { param: "a".into(), component: 0, ty }],
            launches: vec![Launch {
                kernel: "k".into(),
                args: vec![Arg::Scalar(0), Arg::Buffer(0)],
                global: [1; 3],
                local: [1; 3],
            }],
            control: vec![],
            faults: vec![],
        };
        assert_eq!(check(plan, &inputs).expect("it runs"), [value], "{ty}");
    }
}

#[test]
fn failures_have_codes() {
    let mut plan = scal(64, 64);
    plan.source = "kernel void k(global float *x) { x[0] = nonsense; }".into();
    let failure = check(plan, &inputs(64)).unwrap_err();
    assert_eq!(failure.0[0].code, Code::BuildFailed);
    assert!(failure.0[0].notes.iter().any(|n| n.contains("nonsense")), "{failure:?}");

    assert_eq!(code(check(scal(100, 64), &inputs(100))), Code::KernelLimit);
    assert_eq!(code(check(scal(1 << 20, 1 << 20), &inputs(1 << 20))), Code::KernelLimit);
    assert_eq!(code(check(scal(64, 64), &inputs(65))), Code::InputShape);
    assert_eq!(code(check(scal(64, 64), &Inputs::default())), Code::InputMissing);

    let mut plan = scal(64, 64);
    plan.buffers[1].len = 1 << 50;
    assert_eq!(code(check(plan, &inputs(64))), Code::DeviceMemory);

    let mut plan = scal(64, 64);
    plan.launches[0].args.pop();
    assert_eq!(code(check(plan, &inputs(64))), Code::Internal);

    let mut wrong = inputs(64);
    wrong.insert("a", 0, HostArray::from_slice(&[2i32]));
    assert_eq!(code(check(scal(64, 64), &wrong)), Code::InputType);
}

/// A plan that adds the number of each iteration to an element.
fn counting(steps: ScalarType, begin: Control) -> HostPlan {
    let (elem, role) = (ScalarType::I32, Role::Output(0));
    let kernel =
        |name: &str, args| Launch { kernel: name.into(), args, global: [1; 3], local: [1; 3] };
    HostPlan {
        source: "kernel void clear(global int *y) { y[0] = 0; }
                 kernel void count(global int *y, int i) { y[0] += 100 + i; }"
            .into(),
        options: String::new(),
        buffers: vec![Buffer { name: "y".into(), elem, len: 1, role }],
        scalars: vec![Scalar { param: "steps".into(), component: 0, ty: steps }],
        launches: vec![
            kernel("clear", vec![Arg::Buffer(0)]),
            kernel("count", vec![Arg::Buffer(0), Arg::Counter(0)]),
        ],
        control: vec![Control::Launch(0), begin, Control::Launch(1), Control::End],
        faults: vec![],
    }
}

#[test]
fn an_input_says_how_often_a_loop_repeats() {
    let begin = |scalar| Control::RepeatGiven { scalar, plus: 1, less: 2 };
    let sum = |value: HostArray| -> Result<Vec<i32>> {
        let mut inputs = Inputs::default();
        let plan = counting(value.ty(), begin(0));
        inputs.insert("steps", 0, value);
        Ok(check(plan, &inputs)?[0].to_vec::<i32>().expect("elements of this type"))
    };
    let of = |n: i32| sum(HostArray::from_slice(&[n])).expect("it runs");
    assert_eq!([of(5), of(2), of(1), of(0), of(-7)], [[406], [100], [0], [0], [0]]);
    assert_eq!(sum(HostArray::from_slice(&[255u8])).expect("it runs"), [0]);
    assert_eq!(of(i32::MAX), [0]);
    // Plans may come from files.
    assert_eq!(sum(HostArray::from_slice(&[2.0f32])).map_err(|f| f.0[0].code), Err(Code::Internal));
    let absent = check(counting(ScalarType::I32, begin(1)), &Inputs::default());
    assert_eq!(code(absent), Code::Internal);
    let missing = check(counting(ScalarType::I32, begin(0)), &Inputs::default());
    assert_eq!(code(missing), Code::InputMissing);
}

/// A loop may launch more kernels than wait for the device at a time.
#[test]
fn long_loops_run() {
    let ys = check(counting(ScalarType::I32, Control::Repeat(Some(20_000))), &Inputs::default());
    let sum = 20_000 * 100 + 20_000 * 19_999 / 2;
    assert_eq!(ys.expect("it runs")[0].to_vec::<i32>().expect("elements of this type"), [sum]);
}

/// An ordinary run times its first launch and its last, whichever step comes after them.
#[test]
fn kernels_are_timed_when_asked() {
    let rt = Runtime::open(None).expect("it opens");
    let none = rt.upload(&Inputs::default()).expect("there is memory");
    let times = |control: Vec<Control>| {
        let plan = HostPlan { control, ..counting(ScalarType::I32, Control::End) };
        let built = rt.build(&Arc::new(plan)).expect("it compiles");
        let prepared = rt.prepare(built, &none).expect("there is memory");
        let watched = prepared.run_watched(&rt, None).expect("it runs");
        let [clear, count] = watched.kernels_us[..] else { panic!("two kernels: {watched:?}") };
        let sum = watched.device_us;
        assert!(clear > 0.0 && count >= 0.0 && clear + count <= sum + 1.0, "{watched:?}");
        prepared.run(&rt).expect("it runs")
    };
    let many = |n| vec![Control::Repeat(Some(n)), Control::Launch(1), Control::End];
    let after = |steps: Vec<Control>| [vec![Control::Launch(0)], steps].concat();
    let long = times(after(many(3000)));
    assert!(long.kernels_us.is_empty() && long.device_us > 0.0, "{long:?}");
    let alone = times(after(many(0)));
    assert!(alone.kernels_us.len() == 2 && alone.device_us > 0.0, "{alone:?}");
    let nested = [vec![Control::Repeat(Some(2))], many(2), vec![Control::End]].concat();
    let nested = times(after(nested));
    assert!(nested.kernels_us.is_empty() && nested.device_us > 0.0, "{nested:?}");
}

/// A plan that counts to `n`, with two buffers for the number that are exchanged, and counts its steps.
fn counting_while(n: i32) -> HostPlan {
    let buffer = |name: &str, elem, len, role| Buffer { name: name.into(), elem, len, role };
    let launch = |name: &str, args: &[usize]| Launch {
        kernel: name.into(),
        args: args.iter().map(|b| Arg::Buffer(*b)).collect(),
        global: [1; 3],
        local: [1; 3],
    };
    HostPlan {
        source: format!(
            "kernel void begin(global int *x, global int *steps) {{ *x = 0; *steps = 0; }}
             kernel void goes(global const int *x, global uchar *flag, global const int *goes_on) {{
                 if (*goes_on == 0) return;
                 *flag = *x < {n};
             }}
             kernel void count(global const int *x, global int *next, global int *steps, global const int *goes_on) {{
                 if (*goes_on == 0) return;
                 *next = *x + 1;
                 *steps += 1;
             }}
             kernel void end(global const int *x, global int *y) {{ *y = *x; }}"
        ),
        options: String::new(),
        buffers: vec![
            buffer("x", ScalarType::I32, 1, Role::Temp),
            buffer("next", ScalarType::I32, 1, Role::Temp),
            buffer("flag", ScalarType::Bool, 1, Role::Temp),
            buffer("y", ScalarType::I32, 1, Role::Output(0)),
            buffer("steps", ScalarType::I32, 1, Role::Output(1)),
            buffer("goes_on", ScalarType::I32, GOES_ON_WORDS, Role::GoesOn),
        ],
        scalars: vec![],
        launches: vec![
            launch("begin", &[0, 4]),
            launch("goes", &[0, 2, 5]),
            launch("count", &[0, 1, 4, 5]),
            launch("end", &[0, 3]),
        ],
        control: vec![
            Control::Launch(0),
            Control::Repeat(None),
            Control::Launch(1),
            Control::Check(2),
            Control::Launch(2),
            Control::Swap(0, 1),
            Control::End,
            Control::Launch(3),
        ],
        faults: vec![],
    }
}

/// Iterations that are launched before it is known whether there are any change nothing.
#[test]
fn loops_run_ahead_of_their_checks() {
    for most in [1, 2, 16] {
        let mut rt = Runtime::open(None).expect("it opens");
        rt.iterations_ahead = most;
        let none = rt.upload(&Inputs::default()).expect("there is memory");
        for n in [0, 1, 2, 3, 5, 6, 7, 13, 14, 30, 31, 100] {
            let built = rt.build(&Arc::new(counting_while(n))).expect("it compiles");
            let prepared = rt.prepare(built, &none).expect("there is memory");
            // The second run finds what the first one left.
            for _ in 0..2 {
                let (times, outputs) = prepared.check(&rt).expect("it runs");
                let numbers: Vec<_> = outputs.iter().map(HostArray::to_vec::<i32>).collect();
                assert_eq!(numbers, [Some(vec![n]), Some(vec![n])], "{most} ahead");
                assert!(times.device_us > 0.0);
            }
            let times = prepared.run(&rt).expect("it runs");
            assert!(times.device_us > 0.0 && times.kernels_us.is_empty(), "{times:?}");
        }
    }
}

#[test]
fn unknown_devices_are_listed() {
    let failure = Runtime::open(Some("no such device")).err().expect("it is refused");
    assert_eq!(failure.0[0].code, Code::UnknownDevice);
    assert!(!failure.0[0].notes.is_empty());
}

#[test]
fn bandwidth_is_measured() {
    let rt = Runtime::open(None).expect("it opens");
    let b = bandwidth(&rt, 1 << 20).expect("kernels that run");
    assert!(b.copy.gb_per_s >= b.copy_plain.gb_per_s && b.read.gb_per_s > 0.0);
    assert!(bandwidth(&rt, 4).is_err());
}

#[test]
fn binaries_that_the_driver_refuses_are_built_again() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let rt = Runtime::open_with(None, Some(folder.path())).expect("it opens");
    let plan = Arc::new(scal(64, 64));
    // The cache finds the file complete.
    let cache = Cache::new(folder.path());
    let file = cache.file(rt.info(), &plan.source, &plan.options);
    cache.put(&file, b"no binary of any driver");
    assert!(!rt.build(&plan).expect("it compiles").cached);
    let built = rt.build(&plan).expect("it compiles");
    assert!(built.cached);
    let uploaded = rt.upload(&inputs(64)).expect("there is memory");
    let (_, outputs) =
        rt.prepare(built, &uploaded).expect("there is memory").check(&rt).expect("it runs");
    assert_eq!(outputs[0].to_vec::<f32>().expect("elements of this type")[63], 126.0);
}
