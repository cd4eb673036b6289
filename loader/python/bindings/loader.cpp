// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/options.hpp>

#include "arrays.hpp"
#include "bindings.hpp"
#include "loader_arguments.hpp"
#include "loader_calls.hpp"
#include "run_handle.hpp"

namespace millrace::python {
namespace {

/// How batches become dicts.
struct batch_form {
  field_names fields;
  array_output output = array_output::numpy;
  id_type ids = id_type::int64;
  /// True if tokens and labels are the text as it is stored, and the text without its first token.
  bool are_views = false;
};

/// A batch that the caller keeps. `count` is the number of batches that are kept.
class kept_batch {
 public:
  kept_batch(std::shared_ptr<const loader::batch> batch,
             std::shared_ptr<std::atomic<std::int64_t>> count)
      : batch_(std::move(batch)), count_(std::move(count)) {
    ++*count_;
  }
  kept_batch(const kept_batch&) = delete;
  kept_batch& operator=(const kept_batch&) = delete;
  ~kept_batch() {
    batch_.reset();  // before the count says so
    --*count_;
  }

 private:
  std::shared_ptr<const loader::batch> batch_;
  std::shared_ptr<std::atomic<std::int64_t>> count_;
};

/// Makes the dict of a batch. The arrays lie in the batch's slot if they have the slot's type,
/// and otherwise in memory of their own.
class batch_dict {
 public:
  /// @param owner  keeps the memory of the arrays
  batch_dict(const batch_form& form, std::shared_ptr<const loader::batch> batch,
             std::shared_ptr<const void> owner)
      : form_(form), batch_(std::move(batch)), owner_(std::move(owner)) {}

  nb::dict make() {
    const field_names& fields = form_.fields;
    if (fields.tokens) out_[fields.key_of_tokens()] = tokens();
    if (fields.labels) out_["labels"] = labels();
    if (fields.loss_mask) out_["loss_mask"] = rows_of(batch_->loss_mask());
    if (fields.position_ids) out_["position_ids"] = of_ids(batch_->position_ids());
    if (fields.cu_seqlens) out_["cu_seqlens"] = array_of(batch_->cu_seqlens());
    if (fields.cu_seqlens_padded) {
      out_["cu_seqlens_padded"] = array_of(batch_->cu_seqlens_padded());
    }
    if (fields.max_seqlen) out_["max_seqlen"] = batch_->max_seqlen();
    return out_;
  }

 private:
  std::size_t rows() const { return static_cast<std::size_t>(batch_->layout().rows()); }
  std::size_t seq_len() const { return static_cast<std::size_t>(batch_->layout().seq_len()); }

  nb::object tokens() { return form_.are_views ? view(0) : of_ids(batch_->tokens()); }

  nb::object labels() {
    if (form_.are_views && !form_.fields.hugging_face) return view(1);
    if (!form_.fields.hugging_face) return of_ids(batch_->labels());
    std::vector<std::int64_t> shifted(rows() * seq_len());
    put_hugging_face_labels(batch_->tokens().data(), batch_->loss_mask().data(),
                            static_cast<std::int64_t>(rows()), static_cast<std::int64_t>(seq_len()),
                            shifted.data());
    // -100 is not an id of every source type, so the smallest type of these labels is int32.
    if (form_.ids == id_type::int64) return owned(std::move(shifted));
    return owned(std::vector<std::int32_t>(shifted.begin(), shifted.end()));
  }

  /// The text of the slot from token `first` on, with the stride of whole rows. Tokens and labels
  /// share it, so whoever masked labels would change tokens.
  nb::object view(std::size_t first) {
    const loader::slot_layout& layout = batch_->layout();
    const auto width = static_cast<std::size_t>(layout.width());
    const bool narrow = layout.width() == loader::token_width::u16;
    return make_array(form_.output,
                      {.data = batch_->bytes().data() + layout.text_offset() + first * width,
                       .type = narrow ? nb::dtype<std::uint16_t>() : nb::dtype<std::int32_t>(),
                       .shape = {rows(), seq_len()},
                       .row_stride = layout.text_len(),
                       .read_only = form_.fields.tokens && form_.fields.labels},
                      owner_);
  }

  nb::object of_ids(std::span<const std::int64_t> ids) {
    switch (form_.ids) {
      case id_type::int64:
        return rows_of(ids);
      case id_type::source:
        if (batch_->layout().width() == loader::token_width::u16) {
          return owned(std::vector<std::uint16_t>(ids.begin(), ids.end()));
        }
        [[fallthrough]];
      case id_type::int32:
        break;
    }
    return owned(std::vector<std::int32_t>(ids.begin(), ids.end()));
  }

  nb::object array_of(std::span<const std::int32_t> all) {
    return make_array(form_.output,
                      {.data = all.data(),
                       .type = nb::dtype<std::int32_t>(),
                       .shape = {all.size()},
                       .dimensions = 1},
                      owner_);
  }
  template <class T>
  nb::object rows_of(std::span<const T> values) {
    return make_array(form_.output,
                      {.data = values.data(), .type = nb::dtype<T>(), .shape = {rows(), seq_len()}},
                      owner_);
  }
  template <class T>
  nb::object owned(std::vector<T> values) {
    const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    return make_array(form_.output,
                      {.data = kept->data(), .type = nb::dtype<T>(), .shape = {rows(), seq_len()}},
                      kept);
  }

  const batch_form& form_;
  std::shared_ptr<const loader::batch> batch_;
  std::shared_ptr<const void> owner_;
  nb::dict out_;
};

/// The class Loader, on the host.
class python_loader {
 public:
  python_loader(std::shared_ptr<const dataset::run> run, const loader::loader_options& options,
                const batch_form& form, bool reuse)
      : form_(form),
        reuse_(reuse),
        max_held_(options.held),
        run_(std::move(run)),
        options_(options),
        loader_(run_, options),
        rows_(loader_.layout().rows()) {}

  nb::object next() {
    const auto alone = calls_.enter();
    current_.reset();
    require_fewer_held();
    std::optional<loader::batch> taken =
        calls_.wait([&](auto most) { return loader_.next_for(most); });
    if (!taken) throw nb::stop_iteration();
    auto batch = std::make_shared<const loader::batch>(*std::move(taken));
    return reuse_ ? reused(std::move(batch)) : kept(std::move(batch));
  }

  nb::object batch_at(std::int64_t step, std::int64_t micro_batch) {
    const auto alone = calls_.enter();
    const auto read = [&] {
      const without_gil released;
      if (!reader_) reader_.emplace(run_, options_);
      return std::make_shared<const loader::batch>(
          reader_->at({.step = step, .rank = options_.rank, .micro_batch = micro_batch}));
    };
    const auto batch = read();
    return batch_dict(form_, batch, batch).make();
  }

  std::string state() const { return calls_.state(loader_); }
  void load_state(const std::string& json, const std::vector<std::string>& allow) {
    const auto alone = calls_.enter();
    current_.reset();
    dicts_.clear();
    calls_.load_state(loader_, json, allow);
    options_.consumed_samples = loader_.consumed_samples();
    reader_.reset();
  }

  const loader::batch_loader& loader() const noexcept { return loader_; }

 private:
  void require_fewer_held() const {
    if (*held_ < max_held_) return;
    throw config_error("max_held is " + std::to_string(max_held_) + ", and " +
                       std::to_string(*held_) +
                       " batches are still kept: delete the arrays, views and slices of one" +
                       (max_held_ < loader::most_held ? ", or pass a larger max_held" : ""));
  }

  nb::object kept(std::shared_ptr<const loader::batch> batch) {
    auto owner = std::make_shared<const kept_batch>(batch, held_);
    return batch_dict(form_, std::move(batch), std::move(owner)).make();
  }

  // The dict of a slot is made once. Its arrays keep the memory, but not the batch: the loader
  // keeps that until the next call of next().
  nb::object reused(std::shared_ptr<const loader::batch> batch) {
    current_ = batch;
    const void* const slot = batch->bytes().data();
    const bool is_whole = batch->layout().rows() == rows_;
    if (!is_whole || !form_is_stable()) return kept(std::move(batch));
    nb::object& made = dicts_[slot];
    if (!made.is_valid()) made = batch_dict(form_, batch, batch->memory()).make();
    return nb::steal(PyDict_Copy(made.ptr()));  // the caller may change its dict
  }

  // True if all arrays lie in the slot at the same place each time.
  bool form_is_stable() const {
    const field_names& f = form_.fields;
    return !f.cu_seqlens && !f.cu_seqlens_padded && !f.max_seqlen &&
           !(f.labels && f.hugging_face) &&
           (form_.ids == id_type::int64 || (form_.are_views && !f.position_ids));
  }

  loader_calls calls_;
  batch_form form_;
  bool reuse_;
  std::int64_t max_held_;
  std::shared_ptr<std::atomic<std::int64_t>> held_ = std::make_shared<std::atomic<std::int64_t>>(0);
  std::shared_ptr<const dataset::run> run_;
  loader::loader_options options_;  // of `reader_`
  loader::batch_loader loader_;
  std::optional<loader::batch_reader> reader_;  // made by the first `batch_at`
  std::int64_t rows_;
  std::shared_ptr<const loader::batch> current_;
  std::map<const void*, nb::object> dicts_;
};

batch_form form_of(const dataset::run& run, const dataset::field_options& rules,
                   const loader_arguments& given) {
  batch_form form;
  form.fields = given.fields;
  form.output = given.output;
  form.ids = given.ids;
  // The text has zeros where padding is, so it is the tokens unless a stored id counts as padding.
  form.are_views = form.ids == id_type::source && run.extra_token() && rules.pad < 0 &&
                   given.options.context_parallel == 1;
  return form;
}

loader::host_fields host_of(const batch_form& form) {
  loader::host_fields host = form.fields.host();
  if (form.are_views && !form.fields.hugging_face) host.tokens = host.labels = false;
  return host;
}

}  // namespace

void bind_loader(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<python_loader> bound(module, "_HostLoader", "The C++ part of `Loader` on the host.");
  bound
      .def(
          "__init__",
          [](python_loader& self, const run_handle& run, const nb::kwargs& given) {
            loader_arguments arguments = arguments_of(run, given);
            const batch_form form = form_of(*run.order, run.rules, arguments);
            arguments.options.fields = host_of(form);
            const without_gil released;
            new (&self) python_loader(run.order, arguments.options, form, arguments.reuse);
          },
          "run"_a, "given"_a,
          nb::sig("def __init__(self, run: _Order, **given: typing.Any) -> None"))
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> _HostLoader"))
      .def("__next__", &python_loader::next, nb::sig("def __next__(self) -> dict[str, typing.Any]"))
      .def("batch_at", &python_loader::batch_at, "step"_a, "micro_batch"_a,
           nb::sig("def batch_at(self, step: int, micro_batch: int) -> dict[str, typing.Any]"));
  bind_calls(
      bound, [](const python_loader& self) -> const auto& { return self.loader(); });
}

}  // namespace millrace::python
