// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

#include <nanobind/nanobind.h>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

#include "bindings.hpp"

namespace millrace::python {
namespace {

// The classes of millrace._errors, a module that is never unloaded. They are looked up when the
// first error is thrown, so that this module can be imported without the package, as the generator
// of its stubs does.
struct exception_classes {
  PyObject* error;
  PyObject* format;
  PyObject* config;
  PyObject* io;
  PyObject* cuda;
};

const exception_classes& classes() {
  static const exception_classes all = [] {
    const nb::object from = nb::module_::import_("millrace._errors");
    const auto take = [&](const char* name) { return nb::object(from.attr(name)).release().ptr(); };
    return exception_classes{take("Error"), take("FormatError"), take("ConfigError"),
                             take("IOError"), take("CudaError")};
  }();
  return all;
}

/// A text that may quote a path, whose bytes need not be UTF-8.
PyObject* decoded(const char* text) {
  return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "surrogateescape");
}

// OSError's own arguments: errno, the text and the file name. The text says more than strerror().
void raise_io(const io_error& e) {
  const std::string path = e.path().string();
  std::string text = e.what();
  const std::string prefix = path + ": ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  PyObject* const name =
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
  if (name == nullptr) return;
  PyObject* const said = decoded(text.c_str());
  if (said == nullptr) return Py_DECREF(name);
  PyObject* const arguments = Py_BuildValue("(iNN)", e.code(), said, name);
  if (arguments == nullptr) return;
  PyErr_SetObject(classes().io, arguments);
  Py_DECREF(arguments);
}

void raise(PyObject* kind, const char* text) {
  PyObject* const message = decoded(text);
  if (message == nullptr) return;
  PyErr_SetObject(kind, message);
  Py_DECREF(message);
}

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  if (!thrown) return;  // the thread is being ended, which is no exception of C++
  try {
    std::rethrow_exception(thrown);
  } catch (const io_error& e) {
    raise_io(e);
  } catch (const format_error& e) {
    raise(classes().format, e.what());
  } catch (const config_error& e) {
    raise(classes().config, e.what());
  } catch (const loader::cuda::cuda_error& e) {
    raise(classes().cuda, e.what());
  } catch (const error& e) {
    raise(classes().error, e.what());
  } catch (const std::system_error& e) {  // a thread that cannot be started
    raise(classes().error, e.what());
  }
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator(translate);
}

}  // namespace millrace::python
