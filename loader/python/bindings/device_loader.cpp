// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/dlpack_stream.hpp>
#include <millrace/loader/cuda/detail/dlpack_tensor.hpp>
#include <millrace/loader/cuda/device_loader.hpp>

#include "arrays.hpp"
#include "bindings.hpp"
#include "loader_arguments.hpp"
#include "loader_calls.hpp"
#include "run_handle.hpp"

namespace millrace::python {
namespace {

namespace cuda = loader::cuda;

/// One array of a batch in the memory of a device, for any library with `from_dlpack`.
class device_array {
 public:
  device_array(std::shared_ptr<const cuda::device_batch> batch, cuda::batch_field field)
      : batch_(std::move(batch)), field_(field) {}

  nb::capsule dlpack(std::optional<std::int64_t> stream,
                     const std::optional<std::vector<std::int64_t>>& max_version,
                     const std::optional<std::vector<std::int64_t>>& dl_device,
                     std::optional<bool> copy) const {
    const std::vector<std::int64_t> here = device();
    if ((dl_device && *dl_device != here) || copy.value_or(false)) {
      throw nb::buffer_error("an array of a millrace.Loader neither copies nor moves itself");
    }
    cuda::order_for_dlpack(*batch_, stream);
    if (max_version && !max_version->empty() && max_version->front() >= 1) {
      return capsule_of(cuda::to_dlpack_versioned(*batch_, field_), "dltensor_versioned");
    }
    return capsule_of(cuda::to_dlpack(*batch_, field_), "dltensor");
  }
  std::vector<std::int64_t> device() const {
    const int type = batch_->on_device() ? cuda::dlpack::on_cuda : cuda::dlpack::on_cpu;
    return {type, batch_->device()};
  }

 private:
  std::shared_ptr<const cuda::device_batch> batch_;
  cuda::batch_field field_;
};

/// The class Loader, on a device.
class python_device_loader {
 public:
  python_device_loader(std::shared_ptr<const dataset::run> run, const loader_arguments& given,
                       const cuda::device_loader_options& device)
      : fields_(given.fields), loader_(std::move(run), given.options, device) {}

  /// @param on  address of the stream whose work uses the batch
  nb::dict next(std::uintptr_t on) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): Python passes streams as integers
    auto* const stream = reinterpret_cast<cuda::stream>(on);
    const auto alone = calls_.enter();
    std::optional<cuda::device_batch> taken =
        calls_.wait([&](auto most) { return loader_.next_for(stream, most); });
    if (!taken) throw nb::stop_iteration();
    const auto batch = std::make_shared<const cuda::device_batch>(*std::move(taken));
    nb::dict out;
    const auto put = [&](bool wanted, const char* key, cuda::batch_field field) {
      if (wanted) out[key] = device_array(batch, field);
    };
    put(fields_.tokens, fields_.key_of_tokens(), cuda::batch_field::tokens);
    put(fields_.labels, "labels", cuda::batch_field::labels);
    put(fields_.loss_mask, "loss_mask", cuda::batch_field::loss_mask);
    put(fields_.position_ids, "position_ids", cuda::batch_field::position_ids);
    put(fields_.cu_seqlens, "cu_seqlens", cuda::batch_field::cu_seqlens);
    put(fields_.cu_seqlens_padded, "cu_seqlens_padded", cuda::batch_field::cu_seqlens_padded);
    if (fields_.max_seqlen) out["max_seqlen"] = batch->max_seqlen();
    return out;
  }

  std::string state() const { return calls_.state(loader_); }
  void load_state(const std::string& json, const std::vector<std::string>& allow) {
    const auto alone = calls_.enter();
    calls_.load_state(loader_, json, allow);
  }

  const cuda::device_loader& loader() const noexcept { return loader_; }

 private:
  loader_calls calls_;
  field_names fields_;
  cuda::device_loader loader_;
};

/// @throws config_error  an argument is for the host only
void refuse_host_only(const loader_arguments& given) {
  const auto refuse = [](const char* what, const char* instead) {
    throw config_error(std::string(what) + " is for device='cpu'; on a CUDA device, " + instead);
  };
  if (given.output == array_output::numpy) refuse("output='numpy'", "use 'torch' or 'dlpack'");
  if (given.ids == id_type::source) refuse("dtype='source'", "use 'int64' or 'int32'");
  if (given.fields.hugging_face && given.fields.labels) {
    refuse("names='hf' with labels", "use names='megatron', or shift the labels in the model");
  }
  if (given.reuse) refuse("reuse=True", "leave it out");
}

cuda::device_loader_options device_options_of(const loader_arguments& given, int device) {
  refuse_host_only(given);
  cuda::device_loader_options options;
  options.device = device;
  if (given.has_look_ahead) options.look_ahead = given.options.look_ahead;
  if (given.has_max_held) options.held = given.options.held;
  const field_names& wanted = given.fields;
  options.fields = {
      .tokens = wanted.tokens,
      .labels = wanted.labels,
      .position_ids = wanted.position_ids,
      .loss_mask = wanted.loss_mask,
      .cu_seqlens = wanted.cu_seqlens || (wanted.max_seqlen && !wanted.cu_seqlens_padded),
      .cu_seqlens_padded = wanted.cu_seqlens_padded,
      .ids = given.ids == id_type::int32 ? cuda::id_width::i32 : cuda::id_width::i64};
  return options;
}

}  // namespace

void bind_device_loader(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<device_array>(
      module, "DeviceArray",
      "An array of a batch in the memory of a CUDA device. Pass it to "
      "`from_dlpack` of torch, jax, cupy or another library. The array is complete for the "
      "stream that this library passes.")
      .def(
          "__dlpack__", &device_array::dlpack, nb::kw_only(), "stream"_a = nb::none(),
          "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a = nb::none(),
          "A capsule of DLPack. `stream` is the consumer's stream, as in the array API standard.",
          nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] "
                  "| None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = "
                  "None) -> typing_extensions.CapsuleType"))
      .def(
          "__dlpack_device__",
          [](const device_array& self) {
            const std::vector<std::int64_t> device = self.device();
            return nb::make_tuple(device[0], device[1]);
          },
          "The type of the device, 2 for CUDA, and its index.",
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));

  nb::class_<python_device_loader> bound(module, "_DeviceLoader",
                                         "The C++ part of `Loader` on a device.");
  bound
      .def(
          "__init__",
          [](python_device_loader& self, const run_handle& run, int device,
             const nb::kwargs& given) {
            const loader_arguments arguments = arguments_of(run, given);
            const cuda::device_loader_options options = device_options_of(arguments, device);
            const without_gil released;
            new (&self) python_device_loader(run.order, arguments, options);
          },
          "run"_a, "device"_a, "given"_a,
          nb::sig("def __init__(self, run: _Order, device: int, **given: typing.Any) -> None"))
      .def("next", &python_device_loader::next, "stream"_a,
           nb::sig("def next(self, stream: int) -> dict[str, typing.Any]"));
  bind_calls(
      bound, [](const python_device_loader& self) -> const auto& { return self.loader().host(); });
}

}  // namespace millrace::python
