// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/loader/batch_loader.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

/// Describes one run as a line of text, and computes the rows that a loader serves for this run.
/// The text has everything that determines the rows. The datasets come from a generator that is
/// defined here, not in the library.
namespace millrace::test {

/// SplitMix64 (Steele, Lea, Flood 2014). It gives the same numbers on every platform.
class split_mix {
 public:
  explicit split_mix(std::uint64_t seed) : state_(seed) {}

  std::uint64_t operator()() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// Returns a number from `least` to `most`, both included.
  std::int64_t from_to(std::int64_t least, std::int64_t most) noexcept {
    const auto choices = static_cast<std::uint64_t>(most - least) + 1;
    return least + static_cast<std::int64_t>((*this)() % choices);
  }
  bool one_in(std::int64_t n) noexcept { return from_to(1, n) == 1; }

 private:
  std::uint64_t state_;
};

enum class case_order { stored, megatron, instant, packed };

/// A dataset of a case. `write_case_dataset` draws its documents with `split_mix(seed)`.
struct case_dataset {
  std::uint64_t seed = 0;
  std::int64_t documents = 0;
  bool wide = false;          ///< stored as int32 instead of uint16
  std::int64_t same_as = -1;  ///< if >= 0, index of the dataset whose files this dataset uses

  friend bool operator==(const case_dataset&, const case_dataset&) = default;
};

/// The weights that apply from `first_step` on, one for each dataset. A dataset with weight 0 is
/// not served.
struct case_segment {
  std::int64_t first_step = 0;
  std::vector<std::int64_t> weights;

  friend bool operator==(const case_segment&, const case_segment&) = default;
};

/// An edit of a run. `source` is the index of a dataset if `change` blocks documents, otherwise -1.
struct case_edit {
  dataset::edit change;
  std::int64_t source = -1;

  friend bool operator==(const case_edit&, const case_edit&) = default;
};

struct served_case {
  case_order order = case_order::stored;
  std::vector<case_dataset> data;
  /// The segments with the weights of the datasets. Empty if there is a single dataset. If it is
  /// empty for several datasets, the megatron order blends them by length, and the other orders
  /// weight them equally.
  std::vector<case_segment> blend;
  std::int64_t seed = 1234;
  std::int64_t seq_len = 8;
  /// Number of samples; -1: one epoch, or endless in the instant and packed orders.
  std::int64_t samples = -1;

  // Only for the megatron order:
  std::string split = "none";  ///< value of --split; none: all data belongs to `part`
  std::int64_t part = 0;       ///< 0: training, 1: validation, 2: test
  bool extra_token = true;
  bool keep_partial = false;  ///< the last sample of a validation part may be short
  bool fused = false;         ///< round the blend error once, not twice

  // Only for the packed order; documents that are longer than a row are left out:
  std::int64_t pad_documents_to = 1;
  dataset::packing_algorithm packing = dataset::packing_algorithm::best_fit;

  std::int64_t batch_size = 1;
  std::int64_t world_size = 1;
  std::int64_t global_batch_size = 0;
  std::optional<dataset::rampup_batch> rampup;
  loader::sampler_type sampler = loader::sampler_type::single;
  bool data_sharding = true;
  bool drop_last = true;
  std::int64_t consumed_samples = 0;
  std::vector<case_edit> edits;

  std::int64_t most_batches = 1000;  ///< maximum number of micro-batches per rank

  std::int64_t width() const { return batch_size * world_size; }
  std::int64_t step_samples() const { return global_batch_size == 0 ? width() : global_batch_size; }
};

// --- text -----------------------------------------------------------------------------------

inline constexpr const char* case_orders[] = {"stored", "megatron", "instant", "packed"};
inline constexpr const char* case_samplers[] = {"single", "cyclic", "full_validation"};
inline constexpr const char* case_kinds[] = {"skip", "replay", "block"};
inline constexpr const char* case_units[] = {"samples", "steps", "documents"};

namespace detail {

inline std::vector<std::string> pieces_of(const std::string& text, char separator) {
  std::vector<std::string> pieces;
  std::istringstream in(text);
  for (std::string each; std::getline(in, each, separator);) pieces.push_back(each);
  return pieces;
}

template <class List, class Text>
std::string joined(const List& list, char separator, const Text& text_of) {
  std::string text;
  for (const auto& each : list)
    text += (text.empty() ? "" : std::string(1, separator)) + text_of(each);
  return text;
}

template <std::size_t N>
std::size_t number_of(const char* const (&names)[N], const std::string& name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (name == names[i]) return i;
  }
  throw std::runtime_error("served case: unknown word " + name);
}

}  // namespace detail

/// Returns the case as a line of `key=value` words. The order of the keys is fixed.
inline std::string case_text(const served_case& c) {
  using std::to_string;
  std::ostringstream out;
  out << "order=" << case_orders[static_cast<std::size_t>(c.order)];
  out << " data=" << detail::joined(c.data, ',', [](const case_dataset& d) {
    if (d.same_as >= 0) return "same:" + to_string(d.same_as);
    return to_string(d.seed) + ':' + to_string(d.documents) + (d.wide ? ":i32" : ":u16");
  });
  out << " blend=" << (c.blend.empty() ? "none" : detail::joined(c.blend, '/', [](const auto& s) {
    return to_string(s.first_step) + ':' +
           detail::joined(s.weights, ',', [](std::int64_t w) { return to_string(w); });
  }));
  out << " seed=" << c.seed << " seq_len=" << c.seq_len << " samples=" << c.samples
      << " split=" << c.split << " part=" << c.part << " extra_token=" << c.extra_token
      << " keep_partial=" << c.keep_partial << " fused=" << c.fused
      << " pad_documents_to=" << c.pad_documents_to;
  if (c.packing != dataset::packing_algorithm::best_fit) out << " packing=" << name(c.packing);
  out << " batch_size=" << c.batch_size << " world_size=" << c.world_size
      << " global_batch_size=" << c.global_batch_size << " rampup=";
  if (c.rampup) {
    out << c.rampup->start << ',' << c.rampup->increment << ',' << c.rampup->samples;
  } else {
    out << "none";
  }
  out << " sampler=" << case_samplers[static_cast<std::size_t>(c.sampler)]
      << " data_sharding=" << c.data_sharding << " drop_last=" << c.drop_last
      << " consumed_samples=" << c.consumed_samples << " edits=";
  out << (c.edits.empty() ? "none" : detail::joined(c.edits, '/', [](const case_edit& e) {
    const dataset::edit& x = e.change;
    return std::string(case_kinds[static_cast<std::size_t>(x.kind)]) + ':' +
           case_units[static_cast<std::size_t>(x.unit)] + ':' + to_string(x.first) + ':' +
           to_string(x.last) + ':' + to_string(x.at) + ':' + to_string(x.since) + ':' +
           to_string(e.source);
  }));
  out << " most_batches=" << c.most_batches;
  return out.str();
}

/// @throws std::runtime_error  a key but `packing` is missing, or a word has no '=' or an unknown
/// value
inline served_case parse_case(const std::string& line) {
  std::map<std::string, std::string> words;
  for (const std::string& word : detail::pieces_of(line, ' ')) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) throw std::runtime_error("served case: no '=' in " + word);
    words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const auto text = [&](const char* key) -> const std::string& {
    const auto found = words.find(key);
    if (found == words.end()) throw std::runtime_error(std::string("served case: no ") + key);
    return found->second;
  };
  const auto number = [&](const char* key) { return std::stoll(text(key)); };
  served_case c;
  c.order = static_cast<case_order>(detail::number_of(case_orders, text("order")));
  for (const std::string& each : detail::pieces_of(text("data"), ',')) {
    const auto parts = detail::pieces_of(each, ':');
    if (parts.at(0) == "same") {
      c.data.push_back({.same_as = std::stoll(parts.at(1))});
    } else {
      c.data.push_back({std::stoull(parts.at(0)), std::stoll(parts.at(1)), parts.at(2) == "i32"});
    }
  }
  if (text("blend") != "none") {
    for (const std::string& each : detail::pieces_of(text("blend"), '/')) {
      const auto parts = detail::pieces_of(each, ':');
      case_segment& segment = c.blend.emplace_back();
      segment.first_step = std::stoll(parts.at(0));
      for (const std::string& w : detail::pieces_of(parts.at(1), ',')) {
        segment.weights.push_back(std::stoll(w));
      }
    }
  }
  c.seed = number("seed");
  c.seq_len = number("seq_len");
  c.samples = number("samples");
  c.split = text("split");
  c.part = number("part");
  c.extra_token = number("extra_token") != 0;
  c.keep_partial = number("keep_partial") != 0;
  c.fused = number("fused") != 0;
  c.pad_documents_to = number("pad_documents_to");
  if (words.contains("packing")) {
    c.packing = dataset::packing_algorithm_of(text("packing")).value();
  }
  c.batch_size = number("batch_size");
  c.world_size = number("world_size");
  c.global_batch_size = number("global_batch_size");
  if (text("rampup") != "none") {
    const auto parts = detail::pieces_of(text("rampup"), ',');
    c.rampup = {std::stoll(parts.at(0)), std::stoll(parts.at(1)), std::stoll(parts.at(2))};
  }
  c.sampler = static_cast<loader::sampler_type>(detail::number_of(case_samplers, text("sampler")));
  c.data_sharding = number("data_sharding") != 0;
  c.drop_last = number("drop_last") != 0;
  c.consumed_samples = number("consumed_samples");
  if (text("edits") != "none") {
    for (const std::string& each : detail::pieces_of(text("edits"), '/')) {
      const auto parts = detail::pieces_of(each, ':');
      case_edit& e = c.edits.emplace_back();
      e.change.kind = static_cast<dataset::edit_kind>(detail::number_of(case_kinds, parts.at(0)));
      e.change.unit = static_cast<dataset::edit_unit>(detail::number_of(case_units, parts.at(1)));
      e.change.first = std::stoll(parts.at(2));
      e.change.last = std::stoll(parts.at(3));
      e.change.at = std::stoll(parts.at(4));
      e.change.since = std::stoll(parts.at(5));
      e.source = std::stoll(parts.at(6));
    }
  }
  c.most_batches = number("most_batches");
  return c;
}

// --- data and runs --------------------------------------------------------------------------

/// Writes the dataset that `of` describes. Below, each `r` is the next number of
/// `split_mix(of.seed)`:
///
/// - For each document, r % 4 is the number of its sequences.
/// - For each sequence, the factor is 4 if r % 16 is 0, otherwise 1. The length of the sequence in
///   tokens is the factor times r % 26, with the next r.
/// - For each token, the id is r % 50000, or r % 200000 if `of.wide`.
///
/// A document with the tokens 1 2 3 4 is added at the end, so that no dataset is empty.
inline void write_case_dataset(const std::filesystem::path& prefix, const case_dataset& of) {
  const auto write = [&]<class T>(T, std::uint64_t ids) {
    split_mix random(of.seed);
    documents_of<T> documents;
    for (std::int64_t d = 0; d < of.documents; ++d) {
      auto& document = documents.emplace_back();
      for (auto s = random() % 4; s > 0; --s) {
        auto& sequence = document.emplace_back();
        const std::uint64_t times = random() % 16 == 0 ? 4 : 1;
        for (auto t = times * (random() % 26); t > 0; --t) {
          sequence.push_back(static_cast<T>(random() % ids));
        }
      }
    }
    documents.push_back({{1, 2, 3, 4}});
    write_dataset<T>(prefix, documents);
  };
  if (of.wide) {
    write(std::int32_t{}, 200000);
  } else {
    write(std::uint16_t{}, 50000);
  }
}

/// Writes dataset i to FOLDER/d<i>, unless it uses the files of another dataset. Returns the
/// prefixes of all datasets.
inline std::vector<std::filesystem::path> write_case_data(const served_case& c,
                                                          const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> prefixes;
  for (const case_dataset& each : c.data) {
    if (each.same_as >= 0) {
      prefixes.push_back(prefixes.at(static_cast<std::size_t>(each.same_as)));
      continue;
    }
    prefixes.push_back(folder / ("d" + std::to_string(prefixes.size())));
    write_case_dataset(prefixes.back(), each);
  }
  return prefixes;
}

using case_run = std::shared_ptr<const dataset::run>;

inline dataset::batch_steps steps_of(const served_case& c) {
  return dataset::batch_steps(c.step_samples(), c.rampup);
}

namespace detail {

/// Builds the megatron run of a case. For a blend, each dataset builds 50 % more samples than the
/// blend requests (surplus 0.5), so that no dataset has too few samples.
inline dataset::megatron_run megatron_case_run(const served_case& c,
                                               const std::vector<std::filesystem::path>& prefixes) {
  dataset::blend_list list;
  for (const auto& prefix : prefixes) list.prefixes.push_back(prefix.string());
  if (!c.blend.empty()) {
    for (const std::int64_t w : c.blend[0].weights) list.weights.push_back(static_cast<double>(w));
  }
  dataset::data_blends blends;
  blends.surplus = 0.5;
  const auto part = static_cast<std::size_t>(c.part);
  std::optional<std::string> split;
  if (c.split == "none") {
    blends.per_part[part] = list;
  } else {
    split = blends.split = c.split;
    blends.blend = list;
  }
  dataset::part_sizes sizes = {0, 0, 0};
  sizes[part] = c.samples < 0 ? std::nullopt : std::optional(c.samples);
  const auto plan = dataset::plan_data(blends, sizes)[part];
  return dataset::megatron_run::build(
      plan.value_or(dataset::part_plan{}),
      {.sequence_length = c.seq_len,
       .part = static_cast<dataset::split_part>(c.part),
       .random_seed = static_cast<std::uint32_t>(c.seed),
       .add_extra_token = c.extra_token,
       .drop_last_partial_validation_sequence = !c.keep_partial},
      split, 1, std::nullopt,
      c.fused ? dataset::blend_rounding::fused : dataset::blend_rounding::twice);
}

}  // namespace detail

/// Builds the run of a case. In the instant and packed orders, the order of samples depends on the
/// names of the sources, so these are always s0, s1, ...
inline case_run run_of_case(const served_case& c,
                            const std::vector<std::filesystem::path>& prefixes) {
  if (c.order == case_order::stored) {
    return std::make_shared<const dataset::stored_run>(
        std::make_shared<const dataset::indexed_dataset>(prefixes.at(0)), c.seq_len);
  }
  if (c.order == case_order::megatron) {
    return std::make_shared<const dataset::megatron_run>(detail::megatron_case_run(c, prefixes));
  }
  dataset::instant_options options;
  options.seed = static_cast<std::uint64_t>(c.seed);
  options.seq_len = c.seq_len;
  options.first_position_of = [steps = steps_of(c)](std::int64_t step) {
    return steps.first_position(step);
  };
  if (c.samples >= 0) options.train_samples = c.samples;
  std::vector<dataset::instant_source> sources;
  for (const auto& prefix : prefixes) {
    sources.push_back({prefix, "s" + std::to_string(sources.size()), {}, {}});
  }
  std::vector<case_segment> blend = c.blend;
  if (blend.empty()) blend.push_back({0, std::vector<std::int64_t>(prefixes.size(), 1)});
  for (const case_segment& each : blend) {
    dataset::schedule_segment& segment = options.segments.emplace_back();
    segment.first_step = each.first_step;
    for (std::size_t s = 0; s < each.weights.size(); ++s) {
      if (each.weights[s] == 0) continue;
      segment.sources.push_back(
          {static_cast<std::int64_t>(s), static_cast<double>(each.weights[s])});
    }
  }
  if (c.order == case_order::instant) {
    return std::make_shared<const dataset::instant_run>(sources, options);
  }
  return std::make_shared<const dataset::packed_run>(
      sources, options,
      dataset::packed_options{
          .pad_documents_to = c.pad_documents_to,
          .threads = 1,
          .keep_tables = false,
          .algorithm = c.packing,
          .leave_out_overlong = c.packing != dataset::packing_algorithm::best_fit});
}

inline std::vector<dataset::edit> edits_of(const served_case& c,
                                           const std::vector<std::filesystem::path>& prefixes) {
  std::vector<dataset::edit> edits;
  for (const case_edit& each : c.edits) {
    edits.push_back(each.change);
    edits.back().why = "test";
    if (each.source >= 0) {
      edits.back().source = prefixes.at(static_cast<std::size_t>(each.source)).string();
    }
  }
  return edits;
}

/// Returns the loader options of a rank. The look-ahead and the number of threads differ between
/// ranks, to test that neither affects the rows.
inline loader::loader_options options_of(const served_case& c,
                                         const std::vector<std::filesystem::path>& prefixes,
                                         std::int64_t rank) {
  loader::loader_options options;
  options.batch_size = c.batch_size;
  options.seq_len = c.seq_len;
  options.rank = rank;
  options.world_size = c.world_size;
  options.consumed_samples = c.consumed_samples;
  options.look_ahead = 1 + rank % 3;
  options.global_batch_size = c.global_batch_size;
  options.rampup = c.rampup;
  options.sampler = c.sampler;
  options.data_sharding = c.data_sharding;
  options.drop_last = c.drop_last;
  options.edits = edits_of(c, prefixes);
  options.fields = {true, true, true, true, true};
  options.threads = 1 + rank % 2;
  return options;
}

inline std::unique_ptr<loader::batch_loader> loader_of(const case_run& run,
                                                       const loader::loader_options& options) {
  return std::make_unique<loader::batch_loader>(run, options);
}

// --- what is served -------------------------------------------------------------------------

/// A served row and its place in the run.
struct case_row {
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;
  std::int64_t row = 0;
  std::int64_t sample = 0;    ///< index among the samples that all ranks serve in the whole run
  std::int64_t position = 0;  ///< position in the run without edits
  std::int64_t source = 0;
  std::int64_t real = 0;
  std::vector<std::int64_t> text;
  std::vector<std::int32_t> boundaries;
  std::vector<std::int32_t> document_ends;
  std::vector<std::int64_t> fields;  ///< tokens, then labels, position ids and loss mask

  friend bool operator==(const case_row&, const case_row&) = default;
};

struct case_batch {
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;
  std::int64_t micro_batches = 0;
  std::int64_t first_sample = 0;
  std::vector<std::int32_t> cu_seqlens;
  std::int32_t max_seqlen = 0;
  std::vector<case_row> rows;

  friend bool operator==(const case_batch&, const case_batch&) = default;
};

namespace detail {

inline case_row row_of(const loader::batch& batch, std::size_t r) {
  const loader::slot_layout& layout = batch.layout();
  const auto put = [](auto& to, const auto& from, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      to.push_back(static_cast<typename std::decay_t<decltype(to)>::value_type>(from[i]));
    }
  };
  case_row row;
  row.step = batch.step();
  row.micro_batch = batch.micro_batch();
  row.row = static_cast<std::int64_t>(r);
  row.sample = batch.first_sample() + row.row;
  row.position = batch.positions()[r];
  row.source = batch.sources()[r];
  row.real = batch.real()[r];
  const auto text = static_cast<std::size_t>(layout.text_len());
  if (layout.width() == loader::token_width::u16) {
    put(row.text, batch.text<std::uint16_t>(), r * text, text);
  } else {
    put(row.text, batch.text<std::int32_t>(), r * text, text);
  }
  const auto begin = static_cast<std::size_t>(batch.boundary_begin()[r]);
  const auto count = static_cast<std::size_t>(batch.boundary_begin()[r + 1]) - begin;
  put(row.boundaries, batch.boundaries(), begin, count);
  if (layout.packed()) put(row.document_ends, batch.document_ends(), begin, count);
  const auto length = static_cast<std::size_t>(layout.seq_len());
  put(row.fields, batch.tokens(), r * length, length);
  put(row.fields, batch.labels(), r * length, length);
  put(row.fields, batch.position_ids(), r * length, length);
  put(row.fields, batch.loss_mask(), r * length, length);
  return row;
}

}  // namespace detail

/// Copies all that a batch with all fields contains.
inline case_batch contents_of(const loader::batch& batch) {
  case_batch copied;
  copied.step = batch.step();
  copied.micro_batch = batch.micro_batch();
  copied.micro_batches = batch.micro_batches();
  copied.first_sample = batch.first_sample();
  copied.cu_seqlens.assign(batch.cu_seqlens().begin(), batch.cu_seqlens().end());
  copied.max_seqlen = batch.max_seqlen();
  for (std::size_t r = 0; r < static_cast<std::size_t>(batch.layout().rows()); ++r) {
    copied.rows.push_back(detail::row_of(batch, r));
  }
  return copied;
}

/// Returns the first `most_batches` batches of a rank, or all of them if there are fewer.
inline std::vector<case_batch> serve(const served_case& c, const case_run& run,
                                     const std::vector<std::filesystem::path>& prefixes,
                                     std::int64_t rank) {
  const auto loader = loader_of(run, options_of(c, prefixes, rank));
  std::vector<case_batch> served;
  while (std::ssize(served) < c.most_batches) {
    const auto batch = loader->next();
    if (!batch) break;
    served.push_back(contents_of(*batch));
  }
  return served;
}

}  // namespace millrace::test
