// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <millrace/formats/dtype.hpp>

namespace millrace::python {

namespace nb = nanobind;

/// The library whose arrays a loader returns.
enum class array_output : std::uint8_t { numpy, torch, dlpack };

/// @throws config_error  `name` is none of "numpy", "torch" and "dlpack"
array_output output_named(std::string_view name);

/// The element type of numpy, torch and DLPack for a type of datasets.
nb::dlpack::dtype dlpack_type(formats::dtype type);

/// Memory that becomes an array of one or two dimensions without a copy.
struct array_memory {
  const void* data = nullptr;
  nb::dlpack::dtype type;
  std::array<std::size_t, 2> shape = {};  ///< {size, 0} if `dimensions` is 1
  int dimensions = 2;
  std::int64_t row_stride = 0;  ///< elements from one row to the next; 0: shape[1]
  bool read_only = false;
};

/// Makes an array over `memory`, which stays valid as long as `owner` exists. The array and its
/// views share `owner`, and drop it on whichever thread deletes the last of them.
nb::object make_array(array_output output, const array_memory& memory,
                      std::shared_ptr<const void> owner);

/// A numpy array [values.size()] that owns a copy of `values`.
template <class T>
nb::object copied_array(std::span<const T> values);

/// A path as Python's `os.fsdecode` has it.
nb::str path_text(const std::filesystem::path& path);

/// The bytes of a path that is a str, as Python's `os.fsencode` has them.
std::string bytes_of_path(nb::handle path);

/// A capsule of DLPack. A consumer that takes the tensor renames the capsule; otherwise the capsule
/// deletes the tensor.
///
/// @param tensor  a unique pointer to a managed tensor of DLPack
/// @param name    "dltensor" or "dltensor_versioned"
template <class Tensor>
nb::capsule capsule_of(Tensor tensor, const char* name);

// ---------------------------------------------------------------------------------------------

template <class T>
nb::object copied_array(std::span<const T> values) {
  const auto copy = std::make_shared<const std::vector<T>>(values.begin(), values.end());
  return make_array(
      array_output::numpy,
      {.data = copy->data(), .type = nb::dtype<T>(), .shape = {copy->size()}, .dimensions = 1},
      copy);
}

template <class Tensor>
nb::capsule capsule_of(Tensor tensor, const char* name) {
  PyObject* const made = PyCapsule_New(tensor.get(), name, [](PyObject* self) {
    const char* const unused = PyCapsule_GetName(self);
    using managed = typename Tensor::element_type;
    const bool is_unused = unused != nullptr && std::string_view(unused).substr(0, 4) != "used";
    if (!is_unused) return;
    auto* const held = static_cast<managed*>(PyCapsule_GetPointer(self, unused));
    if (held != nullptr) held->deleter(held);
  });
  if (made == nullptr) throw nb::python_error();
  (void)tensor.release();
  return nb::steal<nb::capsule>(made);
}

}  // namespace millrace::python
