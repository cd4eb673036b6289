// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/dlpack.hpp>
#include <millrace/loader/cuda/detail/dlpack_tensor.hpp>

namespace millrace::python {
namespace {

std::array<std::int64_t, 2> strides_of(const array_memory& memory) {
  if (memory.dimensions == 1) return {1, 0};
  const auto columns = static_cast<std::int64_t>(memory.shape[1]);
  return {memory.row_stride != 0 ? memory.row_stride : columns, 1};
}

template <class... Kind>
nb::object array_of(const array_memory& memory, std::shared_ptr<const void> owner) {
  using held = std::shared_ptr<const void>;
  const nb::capsule capsule(new held(std::move(owner)),
                            [](void* all) noexcept { delete static_cast<held*>(all); });
  const std::array<std::int64_t, 2> strides = strides_of(memory);
  const nb::ndarray<Kind...> array(const_cast<void*>(memory.data),  // NOLINT: `Kind` has nb::ro
                                   static_cast<std::size_t>(memory.dimensions), memory.shape.data(),
                                   capsule, strides.data(), memory.type);
  return nb::cast(array, nb::rv_policy::reference);
}

/// nanobind can do this, too, but looks the function up by its name and takes 2 us for each tensor.
nb::object torch_tensor(const array_memory& memory, std::shared_ptr<const void> owner) {
  using tensor = loader::cuda::dlpack::managed_tensor;
  auto holder = std::make_unique<loader::cuda::detail::tensor_holder<tensor>>();
  holder->shape = {static_cast<std::int64_t>(memory.shape[0]),
                   static_cast<std::int64_t>(memory.shape[1])};
  holder->strides = strides_of(memory);
  holder->hold = std::move(owner);
  tensor& managed = holder->managed;
  managed.tensor = {.data = const_cast<void*>(memory.data),  // NOLINT: DLPack has no const data
                    .device = {loader::cuda::dlpack::on_cpu, 0},
                    .ndim = memory.dimensions,
                    .dtype = {memory.type.code, memory.type.bits, memory.type.lanes},
                    .shape = holder->shape.data(),
                    .strides = holder->strides.data(),
                    .byte_offset = 0};
  managed.manager = holder.get();
  managed.deleter = loader::cuda::detail::tensor_holder<tensor>::end;
  loader::cuda::dlpack_tensor whole(&holder.release()->managed);

  // Not a static object: that would outlive Python. Whoever calls this holds the GIL.
  static PyObject* from_dlpack = nullptr;
  if (from_dlpack == nullptr) {
    nb::object found = nb::module_::import_("torch.utils.dlpack").attr("from_dlpack");
    from_dlpack = found.release().ptr();
  }
  return nb::handle(from_dlpack)(capsule_of(std::move(whole), "dltensor"));
}

}  // namespace

array_output output_named(std::string_view name) {
  if (name == "numpy") return array_output::numpy;
  if (name == "torch") return array_output::torch;
  if (name == "dlpack") return array_output::dlpack;
  throw config_error("output is '" + std::string(name) +
                     "', expected 'numpy', 'torch' or 'dlpack'");
}

nb::dlpack::dtype dlpack_type(formats::dtype type) {
  return formats::with_type(type, []<class T>(T) { return nb::dtype<T>(); });
}

nb::str path_text(const std::filesystem::path& path) {
  const std::string& bytes = path.native();
  auto text = nb::steal<nb::str>(
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
  if (!text.is_valid()) throw nb::python_error();
  return text;
}

std::string bytes_of_path(nb::handle path) {
  const auto bytes = nb::steal<nb::bytes>(PyUnicode_EncodeFSDefault(path.ptr()));
  if (!bytes.is_valid()) throw nb::python_error();
  return {bytes.c_str(), bytes.size()};
}

nb::object make_array(array_output output, const array_memory& memory,
                      std::shared_ptr<const void> owner) {
  switch (output) {
    case array_output::torch:
      return torch_tensor(memory, std::move(owner));
    case array_output::dlpack:
      return array_of<nb::array_api>(memory, std::move(owner));
    case array_output::numpy:
      break;
  }
  return memory.read_only ? array_of<nb::numpy, nb::ro>(memory, std::move(owner))
                          : array_of<nb::numpy>(memory, std::move(owner));
}

}  // namespace millrace::python
