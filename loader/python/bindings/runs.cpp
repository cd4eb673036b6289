// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/megatron/blend_cache.hpp>
#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/prepare_gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/context_cut.hpp>
#include <millrace/loader/detail/batch/host_fields.hpp>
#include <millrace/loader/detail/batch/row_masks.hpp>
#include <millrace/loader/detail/batch/text_gather.hpp>
#include <millrace/loader/detail/io/make_reader.hpp>
#include <millrace/loader/detail/memory/available_memory.hpp>
#include <millrace/loader/detail/pipeline.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>
#include <millrace/loader/options.hpp>

#include "arrays.hpp"
#include "bindings.hpp"
#include "run_handle.hpp"

namespace millrace::python {

field_names field_names_of(const std::vector<std::string>& fields, const std::string& names) {
  field_names wanted;
  if (names != "megatron" && names != "hf") {
    throw config_error("names is '" + names + "', expected 'megatron' or 'hf'");
  }
  wanted.hugging_face = names == "hf";
  const std::map<std::string, bool field_names::*> known = {
      {"tokens", &field_names::tokens},
      {"labels", &field_names::labels},
      {"loss_mask", &field_names::loss_mask},
      {"position_ids", &field_names::position_ids},
      {"cu_seqlens", &field_names::cu_seqlens},
      {"cu_seqlens_padded", &field_names::cu_seqlens_padded},
      {"max_seqlen", &field_names::max_seqlen}};
  for (const std::string& each : fields) {
    const auto found = known.find(each);
    if (found == known.end()) {
      throw config_error("fields has '" + each +
                         "', expected 'tokens', 'labels', 'loss_mask', 'position_ids', "
                         "'cu_seqlens', 'cu_seqlens_padded' or 'max_seqlen'");
    }
    if (wanted.*found->second) throw config_error("fields has '" + each + "' twice");
    wanted.*found->second = true;
  }
  return wanted;
}

namespace {

/// The words of --data-path: a list of str and float, which millrace/_arguments.py has checked. A
/// number is written as Python's repr does, so that it is read back as the same number.
std::vector<std::string> words_of(const nb::handle data_path) {
  std::vector<std::string> words;
  for (const nb::handle each : data_path) {
    words.push_back(nb::isinstance<nb::float_>(each) ? nb::cast<std::string>(nb::repr(each))
                                                     : bytes_of_path(each));
  }
  return words;
}

/// @throws config_error  neither or both are given, or they are not a blend
dataset::blend_list blend_of(const nb::object& data_path, const nb::object& blend) {
  if (data_path.is_none() == blend.is_none()) {
    throw config_error(
        "give either data_path, a list of prefixes or of weights and prefixes, or "
        "blend, (prefixes, weights)");
  }
  if (blend.is_none()) return dataset::parse_blend_list(words_of(data_path), "data_path");
  const auto pair = nb::cast<std::pair<nb::object, nb::object>>(blend);
  dataset::blend_list list;
  list.prefixes = words_of(pair.first);
  if (list.prefixes.empty()) throw config_error("blend has no prefixes");
  if (pair.second.is_none()) return list;
  for (const nb::handle each : pair.second) {
    const std::string text = nb::cast<std::string>(nb::str(each));
    const auto weight = dataset::read_python_float(text);
    if (!weight || !(*weight > 0) || *weight > std::numeric_limits<double>::max()) {
      throw config_error("a weight of blend is " + text + ", expected a number above 0");
    }
    list.weights.push_back(*weight);
  }
  if (list.weights.size() != list.prefixes.size()) {
    throw config_error("blend has " + std::to_string(list.prefixes.size()) + " prefixes and " +
                       std::to_string(list.weights.size()) + " weights, expected equally many");
  }
  return list;
}

/// Reads single samples, as a loader would make them. Thread-safe.
class sample_reader {
 public:
  sample_reader(const dataset::run& order, const dataset::field_options& rules)
      : order_(&order),
        rules_(rules),
        files_(loader::detail::files_of(order.sources())),
        types_(loader::detail::types_of(order.sources())) {}

  /// Makes the lock and the reader if this process has none. A forked process needs its own:
  /// threads are not forked, so a thread of the other process may hold the old lock for ever, and
  /// the old reader has no threads here.
  /// @pre the caller holds the GIL, so that no other thread of Python forks meanwhile
  void begin_in_this_process() {
    if (state_ && process_ == ::getpid()) return;
    process_ = ::getpid();
    (void)state_.release();  // NOLINT(bugprone-unused-return-value): it cannot be destroyed here
    state_ = std::make_unique<state>(files_, types_, *order_, rules_);
  }

  /// @param wanted  the arrays to make
  /// @pre begin_in_this_process() was called
  std::shared_ptr<loader::detail::batch_slot> read(std::int64_t position,
                                                   const loader::host_fields& wanted) {
    namespace detail = loader::detail;
    const bool masked = state_->masks && wanted.loss_mask;
    const loader::slot_layout layout(1, order_->seq_len(), order_->extra_token(),
                                     detail::width_of(types_), order_->packed(), 1, masked,
                                     order_->last_token_as_label());
    auto slot = std::make_shared<detail::batch_slot>(layout, memory_of(layout.capacity_bytes()));
    if (const std::size_t bytes = detail::host_bytes(wanted, layout); bytes > 0) {
      detail::place_host_fields(wanted, memory_of(bytes), *slot);
    }
    std::vector<dataset::sample_text> rows(1);
    order_->text_of(position, wanted.has_cu_seqlens() || order_->packed() || masked, rows[0]);
    {
      const std::scoped_lock lock(state_->mutex);
      detail::batch_slot& whole = state_->whole ? *state_->whole : *slot;
      state_->gather.fill(rows, *state_->reader, whole);
      if (masked) state_->masks->fill(rows, whole);
      if (state_->whole) state_->cut.fill(rows, whole, *slot);
    }
    slot->sources = {rows[0].source};
    detail::fill_host_fields(wanted, {.options = rules_}, *slot);
    return slot;
  }

 private:
  static loader::memory_block memory_of(std::size_t bytes) {
    constexpr std::align_val_t alignment{64};
    auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment));
    return {memory, [](std::byte* block) { ::operator delete(block, alignment); }};
  }

  const dataset::run* order_;
  dataset::field_options rules_;
  std::vector<loader::data_file> files_;
  std::vector<formats::dtype> types_;
  struct state {
    state(const std::vector<loader::data_file>& files, const std::vector<formats::dtype>& types,
          const dataset::run& order, const dataset::field_options& rules)
        : reader(loader::make_reader(files, {})),
          gather(files, types),
          masks(loader::detail::row_masks::open(order.sources(), loader::mask_alignment::label,
                                                true, order.last_token_as_label())) {
      loader::loader_options options;
      options.batch_size = 1;
      options.mask_bits = masks.has_value();
      options.field_rules = rules;
      cut = loader::detail::pipeline::context_cut_of(order, options);
      if (cut.cuts()) whole.emplace(cut.whole(), memory_of(cut.whole().capacity_bytes()));
    }
    std::mutex mutex;
    std::unique_ptr<loader::range_reader> reader;
    loader::detail::text_gather gather;
    std::optional<loader::detail::row_masks> masks;
    loader::detail::context_cut cut;
    std::optional<loader::detail::batch_slot> whole;  // of rows that are cut
  };
  std::unique_ptr<state> state_;
  ::pid_t process_ = 0;
};

/// The classes MegatronRun and InstantRun.
class python_run : public run_handle {
 public:
  python_run(run_handle made, const field_names& fields)
      : run_handle(std::move(made)),
        fields_(fields),
        reader_(std::make_unique<sample_reader>(*order, rules)) {
    if (fields.cu_seqlens_padded && !order->packed()) loader::refuse_padded_cu_seqlens();
    if (fields.hugging_face && fields.labels) refuse_cut_labels(*order, 1);
  }

  std::int64_t length() const {
    if (samples) return *samples;
    throw nb::type_error("this run has no end; give it train_samples=");
  }

  /// The text of a sample as Megatron's GPTDataset has it: int64 [seq_length, and 1 with an extra
  /// token], padded with `pad`; and the sequences it is from.
  nb::tuple text(std::int64_t k, std::int64_t pad) const {
    const std::int64_t at = position(k);
    reader_->begin_in_this_process();
    std::vector<std::int64_t> text, sequences;
    {
      const without_gil released;
      const auto slot = reader_->read(at, loader::no_host_fields);
      const loader::slot_layout& layout = slot->layout;
      text.assign(static_cast<std::size_t>(layout.text_len()), pad);
      const auto copy = [&]<class Token>(Token) {
        const auto* const from = reinterpret_cast<const Token*>(slot->row(0));
        std::copy_n(from, slot->real()[0], text.begin());
      };
      if (layout.width() == loader::token_width::u16) {
        copy(std::uint16_t{});
      } else {
        copy(std::int32_t{});
      }
      std::vector<dataset::piece> pieces;
      order->pieces(order->at(at), pieces);
      for (const dataset::piece& each : pieces) sequences.push_back(each.sequence);
    }
    return nb::make_tuple(copied_array(std::span<const std::int64_t>(text)),
                          copied_array(std::span<const std::int64_t>(sequences)));
  }

  nb::dict sample(std::int64_t k) const {
    const std::int64_t at = position(k);
    reader_->begin_in_this_process();
    std::shared_ptr<loader::detail::batch_slot> slot;
    {
      const without_gil released;
      slot = reader_->read(at, fields_.host());
      if (fields_.hugging_face && fields_.labels) put_labels(*slot);
    }
    return dict_of(slot);
  }

 private:
  // Python's index, which counts from the end if it is negative.
  std::int64_t position(std::int64_t k) const {
    const std::int64_t end = samples.value_or(order->end());
    const std::int64_t at = k < 0 && samples ? k + *samples : k;
    if (0 <= at && at < end) return at;
    throw nb::index_error(
        ("sample " + std::to_string(k) + " of a run of " + std::to_string(end) + " samples")
            .c_str());
  }

  // The labels of Hugging Face take the memory of a copy of the tokens.
  static void put_labels(loader::detail::batch_slot& slot) {
    const auto size = static_cast<std::size_t>(slot.layout.seq_len());
    auto block = std::make_shared<std::vector<std::int64_t>>(size);
    put_hugging_face_labels(slot.tokens.data(), slot.loss_mask.data(), 1, slot.layout.seq_len(),
                            block->data());
    slot.labels = *block;
    slot.block = {std::move(block), slot.block.get()};  // the text is not used any more
  }

  nb::dict dict_of(const std::shared_ptr<loader::detail::batch_slot>& slot) const {
    nb::dict out;
    const auto put = [&]<class T>(bool wanted, const char* key, std::span<T> values) {
      if (!wanted) return;
      out[key] = make_array(array_output::numpy,
                            {.data = values.data(),
                             .type = nb::dtype<T>(),
                             .shape = {values.size()},
                             .dimensions = 1},
                            slot);
    };
    put(fields_.tokens, fields_.key_of_tokens(), slot->tokens);
    put(fields_.labels, "labels", slot->labels);
    put(fields_.loss_mask, "loss_mask", slot->loss_mask);
    put(fields_.position_ids, "position_ids", slot->position_ids);
    put(fields_.cu_seqlens, "cu_seqlens", std::span(slot->cu_seqlens));
    put(fields_.cu_seqlens_padded, "cu_seqlens_padded", std::span(slot->cu_seqlens_padded));
    if (fields_.max_seqlen) out["max_seqlen"] = slot->max_seqlen;
    return out;
  }

  field_names fields_;
  std::unique_ptr<sample_reader> reader_;
};

dataset::field_options rules_of(const std::optional<std::int64_t>& pad_id,
                                const std::optional<std::int64_t>& eod_id, bool reset_position_ids,
                                bool reset_attention_mask, bool eod_mask_loss) {
  if (!eod_id && (reset_position_ids || reset_attention_mask || eod_mask_loss)) {
    const char* const flag = reset_position_ids     ? "reset_position_ids"
                             : reset_attention_mask ? "reset_attention_mask"
                                                    : "eod_mask_loss";
    throw config_error(std::string(flag) +
                       " is True, so eod_id is required: the id that ends documents");
  }
  if (eod_id && (*eod_id < 0 || *eod_id > std::numeric_limits<std::int32_t>::max())) {
    throw config_error("eod_id is " + std::to_string(*eod_id) +
                       ", expected the id that ends documents, 0 to 2147483647");
  }
  dataset::field_options rules;
  rules.pad = pad_id.value_or(-1);
  rules.eod = eod_id.value_or(dataset::no_token);
  rules.reset_position_ids = reset_position_ids;
  rules.reset_attention_mask = reset_attention_mask;
  rules.eod_mask_loss = eod_mask_loss;
  return rules;
}

std::int64_t length_of_rows(std::int64_t seq_length) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1;
  if (seq_length >= 1 && seq_length <= most) return seq_length;
  throw config_error("seq_length is " + std::to_string(seq_length) + ", expected 1 to " +
                     std::to_string(most));
}

dataset::split_part part_named(const std::string& part) {
  for (const dataset::split_part each : dataset::split_parts) {
    if (part == name(each)) return each;
  }
  throw config_error("part is '" + part + "', expected 'train', 'valid' or 'test'");
}

/// Writes the caches that are missing, as Megatron's rank 0 does.
dataset::megatron_caches prepare_caches(const dataset::part_plan& plan,
                                        const dataset::gpt_request& request,
                                        const std::string& split,
                                        const std::filesystem::path& folder,
                                        const std::string& identifiers) {
  dataset::gpt_cache_options options;
  options.folder = folder;
  options.sequence_length = request.sequence_length;
  options.random_seed = request.random_seed;
  options.drop_last_partial_validation_sequence = request.drop_last_partial_validation_sequence;
  options.split = split;
  options.tokenizer = dataset::read_python_json(identifiers);
  options.threads = 2;
  std::vector<std::int64_t> lengths;
  std::vector<dataset::python_json> described;
  for (const dataset::planned_dataset& each : plan.datasets) {
    const auto prepared =
        dataset::prepare_gpt_cache(options, each.prefix, request.part, each.num_samples);
    if (!prepared) continue;  // `megatron_run::build` says that the split gives the part no data
    lengths.push_back(prepared->plan.samples);
    described.push_back(prepared->description.identifiers());
  }
  if (plan.blended && lengths.size() == plan.datasets.size()) {
    const dataset::blend_recipe recipe(plan, lengths, request.part);
    (void)dataset::blend_cache(options.folder, recipe, std::move(described), request.part)
        .load_or_build();
  }
  return {folder, options.tokenizer};
}

struct megatron_arguments {
  nb::object data_path;
  nb::object blend;
  std::string split;
  std::string part;
  std::int64_t seq_length = 0;
  std::int64_t seed = 0;
  std::optional<std::int64_t> train_samples;
  std::optional<std::int64_t> valid_samples;
  std::optional<std::int64_t> test_samples;
  bool drop_last_partial_validation_sequence = true;
  std::optional<std::filesystem::path> data_cache_path;
  std::string tokenizer_identifiers;
};

/// Refuses a part whose indices would not fit in memory. The kernel would end the process.
/// @param name  of the argument that sets the number of samples
/// @throws config_error
void require_memory(const dataset::part_plan& plan, const dataset::gpt_request& request,
                    const char* name, std::int64_t samples) {
  // Each sample takes 12 bytes, each sequence of each epoch 4 bytes, and each sample of a blend 10.
  double bytes = plan.blended ? 10 * static_cast<double>(plan.size.value_or(0)) : 0;
  for (const dataset::planned_dataset& each : plan.datasets) {
    const dataset::index_columns columns(each.prefix, dataset::index_access::pread);
    const auto tokens = static_cast<double>(std::max<std::int64_t>(1, columns.token_count()));
    const double sequences_of_sample = static_cast<double>(columns.sequence_count()) / tokens *
                                       static_cast<double>(request.sequence_length);
    bytes += static_cast<double>(each.num_samples.value_or(0)) * (12 + 4 * sequences_of_sample);
  }
  const auto room = loader::available_memory();
  if (!room || bytes <= static_cast<double>(room->bytes)) return;
  const auto gigabytes = [](double size) {
    return std::to_string(static_cast<std::int64_t>(std::ceil(size / 1e9))) + " GB";
  };
  throw config_error(std::string(name) + " is " + std::to_string(samples) +
                     ": Megatron's indices for so many samples take " + gigabytes(bytes) +
                     " of memory, and " + gigabytes(static_cast<double>(room->bytes)) +
                     " are available (" + room->by +
                     "); expected fewer samples, or InstantRun, whose order needs no indices");
}

run_handle megatron_run_of(const megatron_arguments& given) {
  dataset::gpt_request request;
  request.sequence_length = length_of_rows(given.seq_length);
  if (given.seed < 0 || given.seed > std::numeric_limits<std::uint32_t>::max()) {
    throw config_error("seed is " + std::to_string(given.seed) + ", expected 0 to 4294967295");
  }
  request.random_seed = static_cast<std::uint32_t>(given.seed);
  request.part = part_named(given.part);
  request.drop_last_partial_validation_sequence = given.drop_last_partial_validation_sequence;
  dataset::data_blends data;
  data.blend = blend_of(given.data_path, given.blend);
  data.split = given.split;
  const std::array samples = {given.train_samples, given.valid_samples, given.test_samples};
  constexpr std::array names = {"train_samples", "valid_samples", "test_samples"};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i] || *samples[i] >= 0) continue;
    throw config_error(std::string(names[i]) + " is " + std::to_string(*samples[i]) +
                       ", expected 0 or more");
  }
  const auto part = static_cast<std::size_t>(request.part);
  if (data.blend->weighted() && !samples[part]) {
    throw config_error(std::string(names[part]) +
                       " is required: a blend with weights has no end of its own");
  }
  dataset::part_sizes sizes = {0, 0, 0};  // those of other parts do not matter
  sizes[part] = samples[part];

  const without_gil released;
  const auto plan = dataset::plan_data(data, sizes)[part].value_or(dataset::part_plan{});
  if (samples[part]) require_memory(plan, request, names[part], *samples[part]);
  std::optional<dataset::megatron_caches> caches;
  if (given.data_cache_path) {
    caches = prepare_caches(plan, request, given.split, *given.data_cache_path,
                            given.tokenizer_identifiers);
  }
  auto made = std::make_shared<const dataset::megatron_run>(
      dataset::megatron_run::build(plan, request, given.split, 2, caches));
  const std::int64_t end = made->end();
  return {.order = std::move(made), .rules = {}, .samples = end};
}

struct instant_arguments {
  nb::object data_path;
  nb::object blend;
  std::int64_t seq_length = 0;
  std::int64_t seed = 0;
  std::optional<std::int64_t> train_samples;
  std::string packing;
  std::int64_t pad_documents_to = 1;
  bool leave_out_overlong = false;
  bool last_token_as_label = false;
  std::optional<std::vector<std::pair<std::int64_t, std::vector<double>>>> schedule;
  std::optional<std::int64_t> global_batch_size;
};

/// The segments of a schedule: (first step, a weight for each source, 0 to leave it out).
std::vector<dataset::schedule_segment> segments_of(const instant_arguments& given,
                                                   const dataset::blend_list& list,
                                                   const std::vector<std::int64_t>& windows) {
  std::vector<dataset::schedule_segment> segments;
  if (!given.schedule) {
    dataset::schedule_segment& all = segments.emplace_back();
    for (std::size_t i = 0; i < list.prefixes.size(); ++i) {
      const double weight = list.weighted() ? list.weights[i] : static_cast<double>(windows[i]);
      all.sources.push_back({static_cast<std::int64_t>(i), weight});
    }
    return segments;
  }
  if (list.weighted()) {
    throw config_error("schedule sets the weights; give the prefixes without weights");
  }
  for (const auto& [first_step, weights] : *given.schedule) {
    if (weights.size() != list.prefixes.size()) {
      throw config_error("schedule has " + std::to_string(weights.size()) + " weights at step " +
                         std::to_string(first_step) + ", expected one for each of the " +
                         std::to_string(list.prefixes.size()) + " datasets (0 leaves one out)");
    }
    dataset::schedule_segment& segment = segments.emplace_back();
    segment.first_step = first_step;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] != 0) segment.sources.push_back({static_cast<std::int64_t>(i), weights[i]});
    }
  }
  return segments;
}

run_handle instant_run_of(const instant_arguments& given) {
  dataset::instant_options options;
  options.seq_len = length_of_rows(given.seq_length);
  if (given.seed < 0) {
    throw config_error("seed is " + std::to_string(given.seed) + ", expected 0 or more");
  }
  options.seed = static_cast<std::uint64_t>(given.seed);
  options.train_samples = given.train_samples;
  const auto packed = dataset::packing_algorithm_of(given.packing);
  if (!packed && given.packing != "none") {
    std::string expected = "'none'";
    for (const std::string_view each : dataset::packing_algorithm_names) {
      const bool is_last = each == dataset::packing_algorithm_names.back();
      expected += (is_last ? " or '" : ", '") + std::string(each) + '\'';
    }
    throw config_error("packing is '" + given.packing + "', expected " + expected);
  }
  if (!packed && given.pad_documents_to != 1) {
    throw config_error("pad_documents_to requires packing; nothing else pads documents");
  }
  if (given.leave_out_overlong && (!packed || *packed == dataset::packing_algorithm::best_fit)) {
    throw config_error(
        "leave_out_overlong requires packing with an algorithm that does not cut "
        "documents; 'best_fit' does");
  }
  if (given.last_token_as_label && (!packed || *packed == dataset::packing_algorithm::best_fit)) {
    throw config_error(
        "last_token_as_label requires packing with an algorithm that does not cut "
        "documents; 'best_fit' does");
  }
  if (given.schedule && given.schedule->size() > 1 && !given.global_batch_size) {
    throw config_error(
        "global_batch_size is required with a schedule: its segments begin at steps");
  }
  if (given.global_batch_size) {
    if (*given.global_batch_size < 1) {
      throw config_error("global_batch_size is " + std::to_string(*given.global_batch_size) +
                         ", expected 1 or more");
    }
    const dataset::batch_steps steps(*given.global_batch_size);
    options.first_position_of = [steps](std::int64_t step) { return steps.first_position(step); };
  }
  const dataset::blend_list list = blend_of(given.data_path, given.blend);

  const without_gil released;
  std::vector<dataset::instant_source> sources;
  std::vector<std::int64_t> windows;
  for (const std::string& prefix : list.prefixes) {
    const dataset::index_columns columns(prefix, dataset::index_access::pread);
    dataset::instant_source& source = sources.emplace_back();
    source.prefix = prefix;
    source.token_count = columns.token_count();
    windows.push_back(std::max<std::int64_t>(1, (columns.token_count() - 1) / options.seq_len));
  }
  options.segments = segments_of(given, list, windows);
  run_handle made;
  if (packed) {
    const dataset::packed_options packing{.pad_documents_to = given.pad_documents_to,
                                          .keep_tables = false,
                                          .algorithm = *packed,
                                          .leave_out_overlong = given.leave_out_overlong,
                                          .last_token_as_label = given.last_token_as_label,
                                          .weigh_by_rows = !list.weighted() && !given.schedule};
    made.order = std::make_shared<const dataset::packed_run>(sources, options, packing);
  } else {
    made.order = std::make_shared<const dataset::instant_run>(sources, options);
  }
  made.samples = given.train_samples;
  return made;
}

using names_list = std::vector<std::string>;

template <class Class>
void bind_shared(Class& bound) {
  bound.def("__len__", &python_run::length)
      .def("__getitem__", &python_run::sample, nanobind::arg("k"),
           nb::sig("def __getitem__(self, k: int, /) -> dict[str, typing.Any]"))
      .def("text", &python_run::text, nanobind::arg("k"), nanobind::arg("pad"),
           nb::sig("def text(self, k: int, pad: int) -> tuple[numpy.ndarray, numpy.ndarray]"))
      .def_prop_ro(
          "seq_length", [](const python_run& run) { return run.order->seq_len(); },
          "Tokens per sample.")
      .def_prop_ro(
          "prefixes",
          [](const python_run& run) {
            nb::list all;
            for (std::int64_t s = 0; s < run.order->source_count(); ++s) {
              all.append(path_text(run.order->prefix(s)));
            }
            return all;
          },
          "The datasets, in the order of the blend.", nb::sig("def prefixes(self) -> list[str]"));
}

}  // namespace

void bind_runs(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<run_handle>(module, "_Order");

  nb::class_<python_run, run_handle> shared(module, "_Run");
  bind_shared(shared);
  struct megatron_class : python_run {
    using python_run::python_run;
  };
  struct instant_class : python_run {
    using python_run::python_run;
  };
  nb::class_<megatron_class, python_run>(module, "MegatronRun",
                                         "The C++ part of `millrace.MegatronRun`.")
      .def(
          "__init__",
          [](megatron_class& self, nb::object data_path, nb::object blend, const std::string& split,
             const std::string& part, std::int64_t seq_length, std::int64_t seed,
             std::optional<std::int64_t> train_samples, std::optional<std::int64_t> valid_samples,
             std::optional<std::int64_t> test_samples, std::optional<std::int64_t> pad_id,
             std::optional<std::int64_t> eod_id, bool reset_position_ids, bool reset_attention_mask,
             bool eod_mask_loss, bool drop_last_partial_validation_sequence,
             const std::optional<std::filesystem::path>& data_cache_path,
             const std::string& tokenizer_identifiers, const names_list& fields,
             const std::string& names) {
            const field_names wanted = field_names_of(fields, names);
            const dataset::field_options rules =
                rules_of(pad_id, eod_id, reset_position_ids, reset_attention_mask, eod_mask_loss);
            run_handle made = megatron_run_of({std::move(data_path), std::move(blend), split, part,
                                               seq_length, seed, train_samples, valid_samples,
                                               test_samples, drop_last_partial_validation_sequence,
                                               data_cache_path, tokenizer_identifiers});
            made.rules = rules;
            new (&self) megatron_class(std::move(made), wanted);
          },
          nb::kw_only(), "data_path"_a.none(), "blend"_a.none(), "split"_a, "part"_a,
          "seq_length"_a, "seed"_a, "train_samples"_a.none(), "valid_samples"_a.none(),
          "test_samples"_a.none(), "pad_id"_a.none(), "eod_id"_a.none(), "reset_position_ids"_a,
          "reset_attention_mask"_a, "eod_mask_loss"_a, "drop_last_partial_validation_sequence"_a,
          "data_cache_path"_a.none(), "tokenizer_identifiers"_a, "fields"_a, "names"_a,
          nb::sig("def __init__(self, **given: typing.Any) -> None"));
  nb::class_<instant_class, python_run>(module, "InstantRun",
                                        "The C++ part of `millrace.InstantRun`.")
      .def(
          "__init__",
          [](instant_class& self, nb::object data_path, nb::object blend, std::int64_t seq_length,
             std::int64_t seed, std::optional<std::int64_t> train_samples,
             const std::string& packing, std::int64_t pad_documents_to, bool leave_out_overlong,
             bool last_token_as_label,
             std::optional<std::vector<std::pair<std::int64_t, std::vector<double>>>> schedule,
             std::optional<std::int64_t> global_batch_size, std::optional<std::int64_t> pad_id,
             std::optional<std::int64_t> eod_id, bool reset_position_ids, bool reset_attention_mask,
             bool eod_mask_loss, const names_list& fields, const std::string& names) {
            const field_names wanted = field_names_of(fields, names);
            const dataset::field_options rules =
                rules_of(pad_id, eod_id, reset_position_ids, reset_attention_mask, eod_mask_loss);
            run_handle made =
                instant_run_of({std::move(data_path), std::move(blend), seq_length, seed,
                                train_samples, packing, pad_documents_to, leave_out_overlong,
                                last_token_as_label, std::move(schedule), global_batch_size});
            made.rules = rules;
            new (&self) instant_class(std::move(made), wanted);
          },
          nb::kw_only(), "data_path"_a.none(), "blend"_a.none(), "seq_length"_a, "seed"_a,
          "train_samples"_a.none(), "packing"_a, "pad_documents_to"_a, "leave_out_overlong"_a,
          "last_token_as_label"_a, "schedule"_a.none(), "global_batch_size"_a.none(),
          "pad_id"_a.none(), "eod_id"_a.none(), "reset_position_ids"_a, "reset_attention_mask"_a,
          "eod_mask_loss"_a, "fields"_a, "names"_a,
          nb::sig("def __init__(self, **given: typing.Any) -> None"))
      .def(
          "packing_report",
          [](const instant_class& self) {
            const auto* run = dynamic_cast<const dataset::packed_run*>(self.order.get());
            std::vector<dataset::packing_report> sources;
            if (run != nullptr) {
              const without_gil released;
              for (std::int64_t s = 0; s < run->source_count(); ++s) {
                sources.push_back(run->packing_of(s));
              }
            }
            nb::list all;
            for (const dataset::packing_report& each : sources) {
              nb::dict one;
              one["rows"] = each.rows;
              one["documents"] = each.documents;
              one["left_out"] = each.left_out;
              one["tokens"] = each.tokens;
              one["padding"] = each.padding;
              all.append(one);
            }
            return all;
          },
          nb::sig("def packing_report(self) -> list[dict[str, int]]"));
}

}  // namespace millrace::python
