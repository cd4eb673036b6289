// SPDX-License-Identifier: Apache-2.0
#include "merge/place_part.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "merge/part_readers.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t copied_chunk_bytes = std::size_t{4} << 20;
constexpr std::size_t mode_chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t chunk_entries = std::size_t{64} << 10;

/// Divides [0, total) into consecutive chunks of at most `run` entries, and calls `work(first,
/// count)` for each chunk.
template <class Work>
void in_runs(std::uint64_t total, std::size_t run, const stop_flag& stop, Work&& work) {
  for (std::uint64_t first = 0; first < total; first += run) {
    stop.check();
    work(first, static_cast<std::size_t>(std::min<std::uint64_t>(run, total - first)));
  }
}

// Copies the tokens from file to file, in the kernel. If there are checksums, also reads the tokens
// to verify them against the part's checksums.
void place_tokens(const merge_input& part, const dataset_extent& before, merge_target& target,
                  const stop_flag& stop) {
  const auto& path = part.paths().bin;
  placed_writer writer(target, target.bin(), before.bin_bytes);
  if (!target.has_checksums()) {
    in_runs(part.view().bin_size_bytes, copied_chunk_bytes, stop, [&](auto first, auto count) {
      writer.append_copy(part.bin(), path, first, count, {}, part.pages());
    });
    return;
  }
  token_reader tokens(part, true, stop);
  std::uint64_t offset = 0;
  tokens.for_each_piece(part.view().bin_size_bytes, [&](std::span<const std::byte> bytes) {
    writer.append_copy(part.bin(), path, offset, bytes.size(), bytes, part.pages());
    offset += bytes.size();
  });
  tokens.finish();
  writer.finish();
}

void place_documents(const merge_input& part, const dataset_extent& before, merge_target& target,
                     const stop_flag& stop) {
  const auto& idx = part.view();
  placed_writer writer(target, target.idx(), target.layout().document_end_at(before.documents + 1));
  const auto shift = static_cast<std::int64_t>(before.sequences);
  std::vector<std::int64_t> ends(chunk_entries);
  std::int64_t last = 0;
  in_runs(idx.document_index.size() - 1, ends.size(), stop, [&](auto first, auto count) {
    const auto run = std::span(ends).first(count);
    part.read_index(idx.document_index_offset(), first + 1, run);
    for (std::size_t i = 0; i < count; ++i) {
      if (run[i] < last || run[i] > idx.sequence_count()) {
        throw format_error(part.paths().idx, idx.document_index_offset() + 8 * (first + 1 + i),
                           fmt::format("a document ends before sequence {}, expected {} to {}",
                                       run[i], last, idx.sequence_count()));
      }
      last = run[i];
      run[i] += shift;
    }
    writer.append(std::as_bytes(run));
  });
  writer.finish();
}

void place_sequences(const merge_input& part, const dataset_extent& before, merge_target& target,
                     const stop_flag& stop) {
  const auto& idx = part.view();
  const merged_layout& layout = target.layout();
  placed_writer lengths_writer(target, target.idx(), layout.length_at(before.sequences));
  placed_writer pointers_writer(target, target.idx(), layout.pointer_at(before.sequences));
  const auto item = static_cast<std::int64_t>(formats::size_bytes(idx.type));
  const auto shift = static_cast<std::int64_t>(before.bin_bytes);
  std::vector<std::int32_t> lengths(chunk_entries);
  std::vector<std::int64_t> pointers(chunk_entries);
  std::int64_t expected = 0;
  in_runs(idx.lengths.size(), chunk_entries, stop, [&](auto first, auto count) {
    part.read_index(idx.lengths_offset(), first, std::span(lengths).first(count));
    part.read_index(idx.pointers_offset(), first, std::span(pointers).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (lengths[i] < 0 || pointers[i] != expected) {
        throw format_error(
            part.paths().idx, idx.pointers_offset() + 8 * (first + i),
            fmt::format("sequence {} has length {} and pointer {}, expected 0 or more, and {}",
                        first + i, lengths[i], pointers[i], expected));
      }
      pointers[i] += shift;
      expected += lengths[i] * item;
    }
    lengths_writer.append(std::as_bytes(std::span(lengths).first(count)));
    pointers_writer.append(std::as_bytes(std::span(pointers).first(count)));
  });
  lengths_writer.finish();
  pointers_writer.finish();
}

void place_modes(const merge_input& part, const dataset_extent& before, merge_target& target,
                 const stop_flag& stop) {
  const auto& idx = part.view();
  placed_writer writer(target, target.idx(), target.layout().mode_at(before.sequences));
  std::vector<std::byte> modes(mode_chunk_bytes);
  in_runs(idx.modes.size(), modes.size(), stop, [&](auto first, auto count) {
    const auto run = std::span(modes).first(count);
    part.read_index(idx.document_index_offset() + 8 * idx.document_index.size(), first, run);
    writer.append(run);
  });
  writer.finish();
}

}  // namespace

void expect_fits(const merge_input& part, const merge_input& first, bool multimodal) {
  const auto& idx = part.view();
  if (idx.type != first.view().type) {
    throw config_error(
        fmt::format("{} holds {}, but {} holds {}; only datasets of the same type can be merged",
                    part.paths().bin.string(), name(idx.type), first.paths().bin.string(),
                    name(first.view().type)));
  }
  if (multimodal && idx.modes.size() != idx.lengths.size()) {
    throw config_error(fmt::format("--multimodal: {} has no modes", part.paths().idx.string()));
  }
}

merge_input reopen(const std::filesystem::path& prefix, const dataset_extent& extent) {
  merge_input part(prefix);
  if (extent_of(part.view()) != extent) {
    throw io_error(part.paths().idx, "open (it was replaced by another process)", ESTALE);
  }
  return part;
}

void place_part(const merge_input& part, const dataset_extent& before, merge_target& target,
                const stop_flag& stop) {
  place_tokens(part, before, target, stop);
  place_documents(part, before, target, stop);
  place_sequences(part, before, target, stop);
  if (target.layout().multimodal) place_modes(part, before, target, stop);
}

}  // namespace millrace::preprocess
