//! The extension module `patsat._patsat`: what the Python package needs of the library. Values cross the border as bytes,
//! and descriptions as JSON; `patsat/__init__.py` makes Python objects of them.

use patsat::cli;
use patsat::diag::{Failure, Source};
use patsat::lang::types::ScalarType;
use patsat::opencl::host::HostArray;
use patsat::opencl::runtime::Runtime;
use patsat::session::npy::NpyArray;
use patsat::session::{
    self, Argument, Device as Place, Event, Float, Loaded, Observer, Program, Request, Resident,
    Session, Strategy, WorkerCommand, generate::Generator,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

create_exception!(_patsat, Error, PyException, "An error with a code, a place and advice.");

/// Turns diagnostics into the exception. Its arguments are the rendered text, the code, and all diagnostics as JSON.
fn raised(failure: &Failure) -> PyErr {
    let text: Vec<String> = failure.0.iter().map(cli::rendered).collect();
    let code = failure.0.first().map_or("E0999", |d| d.code.as_str());
    let all: Vec<_> = failure.0.iter().map(cli::described).collect();
    Error::new_err((text.join("\n"), code, json!(all).to_string()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic is turned into an exception before it could leave a value half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes the events of a search to a Python function, and stops the search at Ctrl-C.
struct Told {
    function: Option<Py<PyAny>>,
    error: Mutex<Option<PyErr>>,
}

impl Told {
    fn tell(&self, event: &serde_json::Value) {
        let Some(function) = &self.function else { return };
        if let Err(e) = Python::attach(|py| function.call1(py, (event.to_string(),)).map(drop)) {
            *lock(&self.error) = Some(e);
        }
    }

    /// Fails if the function has raised an exception.
    fn raised(self) -> PyResult<()> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

impl Observer for Told {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Phase(phase) => self.tell(&json!({"type": "phase", "phase": phase.name()})),
            Event::Warning(d) => self.tell(&json!({"type": "warning", "text": cli::rendered(d)})),
            Event::Candidate { done, of, median_us, best_us, .. } => self.tell(&json!({
                "type": "candidate", "done": done, "of": of, "median_us": median_us,
                "best_us": best_us,
            })),
            Event::Saturated(_) => {}
        }
    }

    fn stop(&self) -> bool {
        let interrupted = Python::attach(|py| py.check_signals().err());
        let mut error = lock(&self.error);
        if interrupted.is_some() {
            *error = interrupted;
        }
        error.is_some()
    }
}

/// A device that this process has opened. Whoever locks a program and its device locks the program first.
#[pyclass(frozen)]
struct Device {
    runtime: Mutex<Runtime>,
}

#[pymethods]
impl Device {
    /// Opens the device that a selector means.
    #[new]
    fn new(py: Python, selector: Option<String>) -> PyResult<Device> {
        let opened = py.detach(|| Runtime::open(selector.as_deref()));
        Ok(Device { runtime: Mutex::new(opened.map_err(|e| raised(&e))?) })
    }

    /// Copies an array to the device.
    fn put(
        self_: Py<Self>,
        py: Python,
        ty: &str,
        shape: Vec<usize>,
        data: Vec<u8>,
    ) -> PyResult<Array> {
        let array = host(ty, shape, data)?;
        let put = py.detach(|| Resident::put(&lock(&self_.get().runtime), &array));
        Ok(Array { device: self_, resident: put.map_err(|e| raised(&e))? })
    }
}

fn described(info: &patsat::device::DeviceInfo) -> serde_json::Value {
    let mut all = json!(info);
    all["label"] = json!(info.label());
    all["short"] = json!(info.short());
    all
}

/// Returns an array of the host.
fn host(ty: &str, shape: Vec<usize>, data: Vec<u8>) -> PyResult<NpyArray> {
    let known = ScalarType::ALL.iter().find(|t| t.name() == ty);
    let ty = *known.ok_or_else(|| PyTypeError::new_err(format!("patsat has no type {ty}")))?;
    let length = shape.iter().product::<usize>();
    let data = HostArray::from_bytes(ty, data).filter(|a| a.len() == length);
    let data = data.ok_or_else(|| PyValueError::new_err("the data do not have the shape"))?;
    Ok(NpyArray { shape, data })
}

/// An array on a device.
#[pyclass(frozen)]
struct Array {
    device: Py<Device>,
    resident: Resident,
}

#[pymethods]
impl Array {
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.resident.shape.clone()
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.resident.array.ty().name()
    }

    /// Copies the elements from the device.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let got = py.detach(|| self.resident.get(&lock(&self.device.get().runtime)));
        Ok(PyBytes::new(py, got.map_err(|e| raised(&e))?.data.bytes()))
    }
}

/// A value that a program is called with.
#[derive(FromPyObject)]
enum Value {
    Device(Py<Array>),
    Text(String),
    Host(String, Vec<usize>, Vec<u8>),
}

impl Value {
    /// Returns an argument of a program on a device.
    fn argument(self, device: &Py<Device>) -> PyResult<Argument> {
        Ok(match self {
            Value::Device(array) if array.get().device.is(device) => {
                Argument::Device(array.get().resident.clone())
            }
            Value::Device(_) => {
                let text = "an argument is on another device; `numpy()` copies it to the host";
                return Err(PyValueError::new_err(text));
            }
            Value::Text(text) => Argument::Text(text),
            Value::Host(ty, shape, data) => Argument::Host(host(&ty, shape, data)?),
        })
    }

    /// Returns an argument for the interpreter.
    fn on_host(self, py: Python) -> PyResult<Argument> {
        match self {
            Value::Device(array) => {
                let array = array.get();
                let got = py.detach(|| array.resident.get(&lock(&array.device.get().runtime)));
                got.map(Argument::Host).map_err(|e| raised(&e))
            }
            Value::Text(text) => Ok(Argument::Text(text)),
            Value::Host(ty, shape, data) => Ok(Argument::Host(host(&ty, shape, data)?)),
        }
    }
}

/// A program with its kernels.
#[pyclass(frozen)]
struct Function {
    loaded: Mutex<Loaded>,
}

/// Type, shape and bytes of an array.
type Parts<'py> = (&'static str, Vec<usize>, Bound<'py, PyBytes>);

/// Values for the sizes of a program.
type Sizes = std::collections::BTreeMap<String, u64>;

#[pymethods]
impl Function {
    /// Checks a program. `worker` is the command that runs candidates in a process of its own.
    #[new]
    #[pyo3(signature = (text, name, entry, *, device, worker, budget, float, rules, store, strategy, cost_model))]
    #[expect(clippy::too_many_arguments, reason = "options of a session")]
    fn new(
        text: Option<String>,
        name: String,
        entry: Option<String>,
        device: Option<String>,
        worker: Vec<String>,
        budget: usize,
        float: &str,
        rules: Vec<String>,
        store: Option<PathBuf>,
        strategy: &str,
        cost_model: Option<String>,
    ) -> PyResult<Function> {
        let float = Float::from_name(float)
            .ok_or_else(|| PyValueError::new_err("float: exact, contract or relaxed"))?;
        let strategy = Strategy::ALL.into_iter().find(|s| s.name() == strategy);
        let strategy = strategy.ok_or_else(|| PyValueError::new_err("no such strategy"))?;
        let made = || -> patsat::diag::Result<Loaded> {
            let rules = session::rule_set(&rules, float)?;
            session::check_own_rules(&rules, patsat::rules::check::Check::default())?;
            let program = match text {
                Some(text) => Program::check(&Source::new(name, text), entry.as_deref())?,
                None => Program::load(Path::new(&name), entry.as_deref())?,
            };
            let program = program.under(&rules)?;
            let start: WorkerCommand = Arc::new(move || {
                let mut command = Command::new(&worker[0]);
                command.args(&worker[1..]);
                command
            });
            let cost_model = cost_model.as_deref().map(session::cost_model).transpose()?;
            let session = Session {
                rules,
                float,
                budget,
                strategy,
                cost_model,
                device: match device.as_deref() {
                    Some("none") => Place::None,
                    _ => Place::Selected(device),
                },
                kernels: store.as_ref().map(|path| patsat::tune::store::cache_of(path, "kernels")),
                store,
                worker: Some(start),
                ..Session::new()?
            };
            Ok(Loaded::new(session, program))
        };
        Ok(Function { loaded: Mutex::new(made().map_err(|e| raised(&e))?) })
    }

    /// Returns the entry's name, its parameters, its sizes, and the number of arrays in its result, as JSON.
    fn signature(&self, py: Python) -> String {
        py.detach(|| {
            let loaded = lock(&self.loaded);
            let entry = &loaded.program.entry;
            let params = entry.params.iter();
            let params = params.map(|p| json!({"name": p.name, "type": p.ty.to_string()}));
            json!({
                "name": entry.name, "params": params.collect::<Vec<_>>(), "sizes": entry.sizes,
                "type": entry.body.ty.to_string(), "results": loaded.program.results(),
                "text": loaded.program.source.text,
            })
            .to_string()
        })
    }

    /// Calls the program. Returns the arrays of its result, and a description as JSON.
    fn call(
        &self,
        py: Python,
        device: Py<Device>,
        arguments: Vec<Value>,
        sizes: Sizes,
    ) -> PyResult<(Vec<Array>, String)> {
        let arguments = arguments.into_iter().map(|value| value.argument(&device));
        let arguments: Vec<_> = arguments.collect::<PyResult<_>>()?;
        let mut told = Told { function: None, error: Mutex::new(None) };
        let called = py.detach(|| {
            let mut loaded = lock(&self.loaded);
            let runtime = lock(&device.get().runtime);
            loaded.call(&runtime, sizes.into_iter().collect(), arguments, &mut told)
        });
        told.raised()?;
        let called = called.map_err(|e| raised(&e))?;
        let about = json!({
            "sizes": called.sizes, "device_us": called.device_us,
            "term": called.variant.term.to_string(), "kernels": called.variant.plan.source,
        });
        let array = |resident| Array { device: device.clone_ref(py), resident };
        Ok((called.outputs.into_iter().map(array).collect(), about.to_string()))
    }

    /// Searches for the best kernels for sizes, and uses them from now on. Returns the result as JSON.
    fn optimize(
        &self,
        py: Python,
        device: Option<Py<Device>>,
        sizes: Sizes,
        budget: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let mut told = Told { function: progress, error: Mutex::new(None) };
        let result = py.detach(|| -> patsat::diag::Result<_> {
            let mut loaded = lock(&self.loaded);
            let mut session = loaded.session.clone();
            session.budget = budget.unwrap_or(session.budget);
            let default = Some(Generator::Normal);
            let sizes = sizes.into_iter().collect();
            let request = Request { sizes, default, ..Request::default() };
            let optimized = session.optimize(&loaded.program, &request, &mut told)?;
            if let Some(device) = &device {
                loaded.adopt(&lock(&device.get().runtime), &optimized)?;
            }
            Ok(cli::result(&optimized))
        });
        told.raised()?;
        Ok(result.map_err(|e| raised(&e))?.to_string())
    }

    /// Runs the program in the reference interpreter. Returns type, shape and bytes of each array of its result.
    fn interpret<'py>(
        &self,
        py: Python<'py>,
        arguments: Vec<Value>,
        sizes: Sizes,
    ) -> PyResult<Vec<Parts<'py>>> {
        let arguments = arguments.into_iter().map(|value| value.on_host(py));
        let arguments: Vec<_> = arguments.collect::<PyResult<_>>()?;
        let arrays = py.detach(|| {
            let loaded = lock(&self.loaded);
            let request =
                session::request_of(&loaded.program, sizes.into_iter().collect(), arguments)?;
            session::eval(&loaded.program, &request)?.arrays()
        });
        let arrays = arrays.map_err(|e| raised(&e))?;
        let all = arrays
            .into_iter()
            .map(|a| (a.data.ty().name(), a.shape, PyBytes::new(py, a.data.bytes())));
        Ok(all.collect())
    }
}

/// Returns the number of the device that a selector means.
#[pyfunction]
fn find(py: Python, selector: Option<&str>) -> PyResult<usize> {
    let found = py.detach(|| {
        let all = patsat::opencl::runtime::devices()?;
        patsat::device::select(&all, selector).map(|info| info.index)
    });
    found.map_err(|e| raised(&e))
}

/// Lists the devices, as JSON.
#[pyfunction]
fn devices(py: Python) -> PyResult<String> {
    let all = py.detach(patsat::opencl::runtime::devices).map_err(|e| raised(&e))?;
    Ok(json!(all.iter().map(described).collect::<Vec<_>>()).to_string())
}

/// Returns the path of the tuning store of the command line.
#[pyfunction]
fn default_store() -> Option<PathBuf> {
    patsat::tune::store::default_path()
}

/// Runs candidates for a parent process, on the standard streams.
#[pyfunction]
fn worker(py: Python) -> PyResult<()> {
    py.detach(|| patsat::tune::worker::serve(std::io::stdin(), std::io::stdout()))?;
    Ok(())
}

/// Returns the version.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[pymodule]
fn _patsat(module: &Bound<PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add_class::<Device>()?;
    module.add_class::<Array>()?;
    module.add_class::<Function>()?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(find, module)?)?;
    module.add_function(wrap_pyfunction!(default_store, module)?)?;
    module.add_function(wrap_pyfunction!(worker, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    Ok(())
}
