// SPDX-License-Identifier: Apache-2.0
#include "merge/shuffle_documents.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/dataset/detail/instant/feistel.hpp>
#include <millrace/dataset/detail/instant/order_keys.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/src_encoder.hpp>
#include <millrace/formats/detail/sum_check.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/merge.hpp"
#include "merge/merge_input.hpp"
#include "merge/merge_sidecars.hpp"
#include "merge/merged_layout.hpp"
#include "merge/place_part.hpp"
#include "merge/shuffle_spill.hpp"
#include "merge/shuffled_dataset.hpp"
#include "output/disk_room.hpp"
#include "output/output_check.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t read_bytes_at_a_time = std::size_t{1} << 20;

/// Reads an array of an `.idx` sequentially, in chunks.
template <class T>
class column_reader {
 public:
  column_reader(const merge_input& input, std::uint64_t array, std::uint64_t count,
                const stop_flag& stop)
      : input_(&input), stop_(&stop), array_(array), left_(count) {}

  /// @pre next() was called fewer than `count` times
  T next() {
    if (at_ == chunk_.size()) {
      stop_->check();
      chunk_.resize(std::min<std::uint64_t>(left_, (std::size_t{64} << 10)));
      input_->read_index(array_, done_, std::span(chunk_));
      done_ += chunk_.size();
      left_ -= chunk_.size();
      at_ = 0;
    }
    return chunk_[at_++];
  }

 private:
  const merge_input* input_;
  const stop_flag* stop_;
  std::uint64_t array_;
  std::uint64_t left_;
  std::uint64_t done_ = 0;
  std::size_t at_ = 0;
  std::vector<T> chunk_;
};

/// A document of an input, as described by its `.idx`.
struct stored_document {
  std::uint64_t begin = 0;  ///< offset of its tokens in the .bin
  std::uint64_t bytes = 0;
  std::span<const std::int32_t> lengths;
  std::span<const std::int8_t> modes;
};

/// Calls `work(document)` for each document of an input, in order. Also verifies the whole `.idx`,
/// because the output's index is computed only from the lengths: an error elsewhere would go
/// unnoticed.
template <class Work>
void for_each_document(const merge_input& input, bool multimodal, const stop_flag& stop,
                       Work&& work) {
  const auto& idx = input.view();
  const auto item = static_cast<std::int64_t>(formats::size_bytes(idx.type));
  const std::uint64_t sequences = idx.lengths.size();
  column_reader<std::int32_t> lengths(input, idx.lengths_offset(), sequences, stop);
  column_reader<std::int64_t> pointers(input, idx.pointers_offset(), sequences, stop);
  column_reader<std::int64_t> ends(input, idx.document_index_offset() + 8,
                                   idx.document_index.size() - 1, stop);
  column_reader<std::int8_t> modes(
      input, idx.document_index_offset() + 8 * idx.document_index.size(), sequences, stop);
  std::vector<std::int32_t> own_lengths;
  std::vector<std::int8_t> own_modes;
  std::int64_t sequence = 0;
  std::int64_t pointer = 0;
  for (std::int64_t d = 0; d < idx.document_count(); ++d) {
    const std::int64_t end = ends.next();
    if (end < sequence || end > idx.sequence_count()) {
      throw format_error(input.paths().idx,
                         idx.document_index_offset() + 8 * (static_cast<std::uint64_t>(d) + 1),
                         fmt::format("a document ends before sequence {}, expected {} to {}", end,
                                     sequence, idx.sequence_count()));
    }
    own_lengths.clear();
    own_modes.clear();
    const std::int64_t begin = pointer;
    for (; sequence < end; ++sequence) {
      const std::int32_t length = lengths.next();
      const std::int64_t found = pointers.next();
      if (length < 0 || found != pointer) {
        throw format_error(
            input.paths().idx, idx.pointers_offset() + 8 * static_cast<std::uint64_t>(sequence),
            fmt::format("sequence {} has length {} and pointer {}, expected 0 or more, and {}",
                        sequence, length, found, pointer));
      }
      pointer += length * item;
      own_lengths.push_back(length);
      if (multimodal) own_modes.push_back(modes.next());
    }
    work(stored_document{static_cast<std::uint64_t>(begin),
                         static_cast<std::uint64_t>(pointer - begin), own_lengths, own_modes});
  }
  if (sequence != idx.sequence_count()) {
    throw format_error(input.paths().idx, idx.document_index_offset(),
                       fmt::format("the documents end at sequence {}, expected {}", sequence,
                                   idx.sequence_count()));
  }
}

/// Reads the tokens of an input sequentially, in large pieces. If `checksums` is set, verifies the
/// input against its P.sum.
class token_reader {
 public:
  token_reader(const merge_input& input, bool checksums, const stop_flag& stop)
      : input_(&input), stop_(&stop), left_(input.view().bin_size_bytes) {
    if (!checksums) return;
    const auto path = input.paths().of(sidecar::sum);
    sum_file_ = io::file_mapping(path);
    try {
      sum_ = formats::parse_sum(sum_file_.bytes());
    } catch (const format_error& e) {
      throw e.in(path);
    }
    if (sum_.bin_bytes != left_ || sum_.idx_bytes != input.idx_bytes()) {
      throw format_error(path, 16, "it belongs to another dataset: the sizes differ");
    }
    check_.emplace(sum_.bin_blocks, sum_.bin_bytes);
  }

  /// Returns the next `size` bytes of tokens. The span is valid until the next call.
  std::span<const std::byte> next(std::uint64_t size) {
    if (size > buffer_.size() - at_) {
      buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
      at_ = 0;
      const std::size_t kept = buffer_.size();
      const std::uint64_t more = std::min<std::uint64_t>(
          left_, std::max<std::uint64_t>(size - kept, read_bytes_at_a_time));
      buffer_.resize(kept + more);
      for (auto rest = std::span(buffer_).subspan(kept); !rest.empty();) {
        stop_->check();
        const auto part = rest.first(std::min(rest.size(), read_bytes_at_a_time));
        input_->read_tokens(offset_, part);
        if (check_) in(input_->paths().bin, [&] { check_->add(part); });
        offset_ += part.size();
        left_ -= part.size();
        rest = rest.subspan(part.size());
      }
    }
    const auto result = std::span<const std::byte>(buffer_).subspan(at_, size);
    at_ += size;
    return result;
  }

  /// Call this after all tokens were read. If there are checksums, also verifies the `.idx`.
  void finish() {
    if (!check_) return;
    in(input_->paths().bin, [&] { check_->finish(); });
    formats::sum_check idx_check(sum_.idx_blocks, sum_.idx_bytes);
    std::vector<std::byte> chunk(read_bytes_at_a_time);
    in(input_->paths().idx, [&] {
      for (std::uint64_t at = 0; at < input_->idx_bytes(); at += chunk.size()) {
        stop_->check();
        const auto part =
            std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), input_->idx_bytes() - at));
        input_->read_index(0, at, part);
        idx_check.add(part);
      }
      idx_check.finish();
    });
  }

 private:
  // Calls `work`. An error about a block contains the block's offset, but no path, so add the path.
  template <class Work>
  static void in(const std::filesystem::path& of, Work&& work) {
    try {
      work();
    } catch (const format_error& e) {
      throw e.path().empty() ? e.in(of) : e;
    }
  }

  const merge_input* input_;
  const stop_flag* stop_;
  std::uint64_t left_;
  std::uint64_t offset_ = 0;
  std::size_t at_ = 0;
  std::vector<std::byte> buffer_;
  io::file_mapping sum_file_;
  formats::sum_view sum_;
  std::optional<formats::sum_check> check_;
};

/// Reads where each document of an input came from: the source file and the place in it. Reads the
/// documents in their order, and changes the number of the source file to its number in the merged
/// dataset.
class place_reader {
 public:
  place_reader(const merge_input& input, const formats::dataset_meta& meta,
               const formats::part_shift& shift, std::vector<formats::src_input>& inputs)
      : path_(input.paths().of(sidecar::src)), file_(path_), shift_(&shift) {
    read([&] {
      view_ = formats::parse_src(file_.bytes());
      expect_src_of(view_, meta);
      inputs.resize(shift.inputs_before);
      std::ranges::move(view_.inputs(), std::back_inserter(inputs));
      cursor_.emplace(view_);
    });
  }
  place_reader(const place_reader&) = delete;

  formats::source_place next() {
    if (at_ == places_.size()) {
      read([&] { places_ = cursor_->next(); });
      at_ = 0;
    }
    return shift_->apply(places_[at_++]);
  }

 private:
  template <class Work>
  void read(Work&& work) const {
    try {
      work();
    } catch (const format_error& e) {
      throw e.in(path_);
    }
  }

  std::filesystem::path path_;
  io::file_mapping file_;
  const formats::part_shift* shift_;
  formats::src_view view_;
  std::optional<formats::src_cursor> cursor_;
  std::span<const formats::source_place> places_;
  std::size_t at_ = 0;
};

void check_fits(const merge_input& input, const merge_input& first, const merge_options& options) {
  if (input.view().type != first.view().type) {
    throw config_error(
        fmt::format("{} holds {}, but {} holds {}; only datasets of the same type can be merged",
                    input.paths().bin.string(), name(input.view().type), first.paths().bin.string(),
                    name(first.view().type)));
  }
  if (options.multimodal && input.view().modes.size() != input.view().lengths.size()) {
    throw config_error(fmt::format("--multimodal: {} has no modes", input.paths().idx.string()));
  }
  expect_another_folder(options.output_prefix, options.input);
}

/// The shuffled order of all documents: maps the index of a document in the concatenated inputs to
/// its index in the output.
class turns {
 public:
  turns(std::uint64_t documents, std::uint64_t seed) {
    if (documents == 0) return;  // of() is never called
    const std::uint64_t hash = dataset::absorb(
        dataset::order_hash(dataset::shuffle_of::documents, seed, dataset::name_hash("")), 0);
    order_.emplace(static_cast<std::int64_t>(documents), dataset::keys_of(hash));
  }
  std::uint64_t of(std::uint64_t document) const noexcept {
    return static_cast<std::uint64_t>(order_->inverse(static_cast<std::int64_t>(document)));
  }

 private:
  std::optional<dataset::feistel> order_;
};

constexpr std::uint64_t varint_bytes(std::uint64_t value) noexcept {
  std::uint64_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

/// Computes an upper bound for the size of P.src. A source place is stored as differences from the
/// previous place, so its encoded size depends on the order of the documents. The bound is computed
/// from the largest line, offset and input index that occur.
class src_bound {
 public:
  void add(const formats::source_place& place) noexcept {
    ++documents_;
    length_bytes_ += varint_bytes(2 * (place.end - place.begin) + 1);
    most_line_ = std::max(most_line_, static_cast<std::uint64_t>(place.line));
    most_end_ = std::max(most_end_, place.end);
  }
  std::uint64_t bytes(std::span<const formats::src_input> inputs) const {
    const std::uint64_t groups = formats::src_group_count(documents_);
    // A document is stored as a byte that says which differences follow, and then each difference
    // as a zigzag varint (formats/spec/src.md). The first document of each group of 64 documents
    // has no differences.
    const std::uint64_t differences = 1 +
                                      (inputs.size() > 1 ? varint_bytes(2 * inputs.size()) : 0) +
                                      varint_bytes(2 * most_line_) + varint_bytes(4 * most_end_);
    return formats::src_header_bytes + length_bytes_ + (documents_ - groups) * differences +
           groups * formats::src_group_bytes + formats::encode_src_inputs(inputs).size();
  }

 private:
  std::uint64_t documents_ = 0;
  std::uint64_t length_bytes_ = 0;
  std::uint64_t most_line_ = 0;
  std::uint64_t most_end_ = 0;
};

/// The sizes of the files that a shuffle will write. measure() finds them by reading everything
/// except the tokens. The spill is a temporary file of several parts: see shuffle_spill.
struct shuffle_sizes {
  std::vector<std::uint64_t> parts;  ///< bytes of the documents in each part of the spill
  std::uint64_t src_bytes = 0;       ///< upper bound for the size of P.src; 0 if there is no P.src
};

std::uint64_t tokens_of(const merge_input& input, std::uint64_t bytes) {
  return bytes / formats::size_bytes(input.view().type);
}

std::uint64_t mask_bytes_of(const merge_input& input, const stored_document& document) {
  return formats::mask_bit_bytes(tokens_of(input, document.bytes));
}

shuffle_sizes measure(const merge_options& options, const merged_sidecars& sidecars,
                      std::span<const std::filesystem::path> prefixes,
                      std::span<const dataset_extent> extents, std::uint64_t documents,
                      const turns& order, std::uint64_t turns_of_part, const stop_flag& stop) {
  shuffle_sizes sizes;
  sizes.parts.resize((documents + turns_of_part - 1) / turns_of_part);
  src_bound bound;
  std::vector<formats::src_input> inputs;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const merge_input input = reopen(prefixes[i], extents[i]);
    std::optional<place_reader> places;
    if (sidecars.src) {
      places.emplace(input, sidecars.parts[i], sidecars.changes[i].shift, inputs);
    }
    for_each_document(input, options.multimodal, stop, [&](const stored_document& document) {
      sizes.parts[order.of(number++) / turns_of_part] +=
          shuffle_spill::size_of(document.lengths.size(), !document.modes.empty(), document.bytes,
                                 sidecars.mask ? mask_bytes_of(input, document) : 0);
      if (places) bound.add(places->next());
    });
  }
  if (sidecars.src) sizes.src_bytes = bound.bytes(inputs);
  return sizes;
}

void note_seed(formats::dataset_meta& meta, std::uint64_t seed) {
  std::erase_if(meta.options, [](const auto& flag) { return flag.first == "shuffle_documents"; });
  meta.options.emplace_back("shuffle_documents", std::to_string(seed));
}

}  // namespace

merge_summary merge_shuffled(const merge_options& options, std::uint64_t seed) {
  const stop_flag stop = stop_flag_of(options);
  const parts_to_merge parts(options, stop);
  const std::vector<std::filesystem::path>& prefixes = parts.used();
  merge_summary summary;
  summary.prefixes = parts.all();
  summary.stopped_before = parts.stopped_before();
  const merge_input first(prefixes.front());
  summary.type = first.view().type;
  merged_sidecars sidecars = plan_sidecars(prefixes);
  if (sidecars.meta && sidecars.meta->tasks) {
    throw config_error(
        fmt::format("--shuffle-documents: {} holds only some tasks of a run, expected all of them; "
                    "a shuffled dataset cannot be merged with the remaining tasks later",
                    options.input.string()));
  }
  dataset_extent whole;
  std::vector<dataset_extent> extents;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    stop.check();
    const merge_input input(prefixes[i]);
    check_fits(input, first, options);
    if (sidecars.meta) expect_meta_of(input, sidecars.parts[i]);
    extents.push_back(extent_of(input.view()));
    whole += extents.back();
  }

  shuffled_dataset output(options.output_prefix,
                          {.type = summary.type,
                           .sequences = whole.sequences,
                           .documents = whole.documents,
                           .bin_bytes = whole.bin_bytes,
                           .multimodal = options.multimodal,
                           .checksums = sidecars.sum,
                           .provenance = sidecars.src,
                           .mask = sidecars.mask},
                          stop);
  if (!options.overwrite) refuse_existing(options.output_prefix);
  const turns order(whole.documents, seed);
  const std::uint64_t turns_of_part =
      shuffle_spill::turns_of_part(whole.documents, whole.bin_bytes);
  const shuffle_sizes sizes =
      measure(options, sidecars, prefixes, extents, whole.documents, order, turns_of_part, stop);
  shuffle_spill spill(output.paths().with(".shuffle"), turns_of_part, sizes.parts, stop);
  if (sidecars.meta) note_seed(*sidecars.meta, seed);
  auto claims =
      output.claims(sizes.src_bytes, sidecars.meta ? formats::meta_bytes(*sidecars.meta) : 0);
  claims.push_back(spill.claim());
  reserve_all(claims, options.output_prefix,
              "the shuffled dataset and the temporary copy of the documents", merge_room_advice,
              stop);
  output.begin();
  spill.begin();
  std::vector<formats::src_input> inputs;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const merge_input input = reopen(prefixes[i], extents[i]);
    check_fits(input, first, options);  // again, because the input may have been replaced
    token_reader tokens(input, sidecars.sum.has_value(), stop);
    std::optional<place_reader> places;
    if (sidecars.src) {
      places.emplace(input, sidecars.parts[i], sidecars.changes[i].shift, inputs);
    }
    std::optional<part_mask> mask;
    if (sidecars.mask) {
      mask.emplace(input.paths().of(sidecar::mask), tokens_of(input, input.view().bin_size_bytes));
    }
    formats::bit_buffer bits;
    for_each_document(input, options.multimodal, stop, [&](const stored_document& document) {
      bits.clear();
      if (mask) {
        const std::uint64_t begin = tokens_of(input, document.begin);
        bits.append(mask->bits(), begin, begin + tokens_of(input, document.bytes));
      }
      spill.add({.turn = order.of(number++),
                 .place = places ? places->next() : formats::source_place{},
                 .lengths = document.lengths,
                 .modes = document.modes,
                 .tokens = tokens.next(document.bytes),
                 .mask = bits.bits().bytes().first(formats::mask_bit_bytes(bits.size()))});
    });
    tokens.finish();
  }
  spill.read([&](const spilled_document& document) { output.append(document); });

  output.finish(inputs, sidecars.meta);
  summary.dropped = sidecars.dropped;
  if (sidecars.bad) {
    summary.dropped.push_back(
        {sidecar::bad, "bad records have no place in a shuffled order; they stay with the inputs"});
  }
  summary.sequences = static_cast<std::int64_t>(whole.sequences);
  summary.documents = static_cast<std::int64_t>(whole.documents);
  summary.tokens = static_cast<std::int64_t>(whole.bin_bytes / formats::size_bytes(summary.type));
  return summary;
}

}  // namespace millrace::preprocess
