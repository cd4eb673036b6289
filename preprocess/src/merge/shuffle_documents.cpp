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
#include "merge/part_readers.hpp"
#include "merge/place_part.hpp"
#include "merge/shuffle_spill.hpp"
#include "merge/sized_dataset.hpp"
#include "output/disk_room.hpp"
#include "output/output_check.hpp"

namespace millrace::preprocess {
namespace {

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
  parts_to_merge parts(options, stop);
  merge_summary without;
  if (parts.duplicates()) without = parts.drop_duplicates(options);
  const std::vector<std::filesystem::path>& prefixes = parts.used();
  merge_summary summary;
  summary.prefixes = parts.all();
  summary.stopped_before = parts.stopped_before();
  summary.duplicates = without.duplicates;
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
    expect_fits(input, first, options.multimodal);
    if (sidecars.meta) expect_meta_of(input, sidecars.parts[i]);
    extents.push_back(extent_of(input.view()));
    whole += extents.back();
  }

  sized_dataset output(options.output_prefix,
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
  auto claims = output.claims(
      {.src = sizes.src_bytes, .meta = sidecars.meta ? formats::meta_bytes(*sidecars.meta) : 0});
  claims.push_back(spill.claim());
  reserve_all(claims, options.output_prefix,
              "the shuffled dataset and the temporary copy of the documents", options.room_advice,
              stop);
  output.begin();
  spill.begin();
  std::vector<formats::src_input> inputs;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const merge_input input = reopen(prefixes[i], extents[i]);
    expect_fits(input, first,
                options.multimodal);  // again, because the input may have been replaced
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
  spill.read([&](const spilled_document& document) {
    output.append_tokens(document.tokens);
    const std::uint64_t bits =
        sidecars.mask ? document.tokens.size() / formats::size_bytes(summary.type) : 0;
    output.append_mask(formats::bit_span(document.mask, bits), 0, bits);
    output.end_document(document.lengths, document.modes, document.place);
  });

  output.finish(inputs, sidecars.meta);
  // If duplicates were dropped, `sidecars` knows what that wrote, and `without` what it did not.
  summary.dropped = parts.duplicates() ? std::move(without.dropped) : sidecars.dropped;
  if (sidecars.bad) {
    summary.dropped.push_back(
        {sidecar::bad, "bad records have no place in a shuffled order; they stay with the inputs"});
  }
  const auto is_of_duplicates = [](const auto& each) { return each.which == sidecar::duplicates; };
  if (parts.duplicates() && std::ranges::any_of(sidecars.dropped, is_of_duplicates)) {
    summary.dropped.push_back(
        {sidecar::duplicates, "it numbers the documents, which are in another order now"});
  }
  summary.sequences = static_cast<std::int64_t>(whole.sequences);
  summary.documents = static_cast<std::int64_t>(whole.documents);
  summary.tokens = static_cast<std::int64_t>(whole.bin_bytes / formats::size_bytes(summary.type));
  return summary;
}

}  // namespace millrace::preprocess
