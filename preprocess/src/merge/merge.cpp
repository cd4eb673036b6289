// SPDX-License-Identifier: Apache-2.0
#include "merge/merge.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/formats/sum_check.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/merge_folder.hpp"
#include "merge/merge_input.hpp"
#include "merge/merge_sidecars.hpp"
#include "output/dataset_writer.hpp"
#include "output/output_check.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t chunk_entries = std::size_t{64} << 10;

/// Calls `work(first, count)` for 0 .. total - 1 in runs of at most `run` entries.
template <class Work>
void in_runs(std::uint64_t total, std::size_t run, Work&& work) {
  for (std::uint64_t first = 0; first < total; first += run) {
    work(first, static_cast<std::size_t>(std::min<std::uint64_t>(run, total - first)));
  }
}

// The tokens' bytes go from file to file in the kernel. Whoever wants checksums of them has to see
// them, too, and finds out then whether the part still is what it was.
void copy_tokens(const merge_input& input, bool checksums, dataset_writer& writer) {
  const std::uint64_t size = formats::bin_size_bytes(input.view());
  const auto& path = input.paths().bin;
  if (!checksums) return writer.append_copy(input.bin(), path, 0, size);
  const auto sum_path = input.paths().of(sidecar::sum);
  const io::file_mapping file(sum_path);
  formats::sum_view sum;
  try {
    sum = formats::parse_sum(file.bytes());
    if (sum.bin_bytes != size || sum.idx_bytes != input.idx_bytes()) {
      throw format_error(16,
                         fmt::format("it is of {} and {} bytes, but the .bin and the .idx have {} "
                                     "and {}: it is of another dataset",
                                     sum.bin_bytes, sum.idx_bytes, size, input.idx_bytes()));
    }
  } catch (const format_error& e) {
    throw e.in(sum_path);
  }
  std::vector<std::byte> chunk(chunk_bytes);
  const auto check = [&](const std::filesystem::path& of, const auto& blocks, std::uint64_t bytes,
                         auto&& read) {
    formats::sum_check sum_check(blocks, bytes);
    try {
      in_runs(bytes, chunk.size(), [&](auto first, auto count) {
        const auto part = std::span(chunk).first(count);
        read(first, part);
        sum_check.add(part);
      });
      sum_check.finish();
    } catch (const format_error& e) {
      throw e.path().empty() ? e.in(of) : e;
    }
  };
  check(path, sum.bin_blocks, size, [&](auto first, auto part) {
    input.read_tokens(first, part);
    writer.append_copy(input.bin(), path, first, part);
  });
  check(input.paths().idx, sum.idx_blocks, input.idx_bytes(),
        [&](auto first, auto part) { input.read_index(0, first, part); });
}

void copy_documents(const merge_input& input, dataset_writer& writer) {
  const auto& idx = input.view();
  std::vector<std::int64_t> ends(chunk_entries);
  std::int64_t last = 0;
  in_runs(idx.document_index.size() - 1, ends.size(), [&](auto first, auto count) {
    const auto part = std::span(ends).first(count);
    input.read_index(idx.document_index_offset(), first + 1, part);
    for (std::size_t i = 0; i < count; ++i) {
      if (part[i] < last || part[i] > idx.sequence_count()) {
        throw format_error(input.paths().idx, idx.document_index_offset() + 8 * (first + 1 + i),
                           fmt::format("a document ends before sequence {}, expected {} to {}",
                                       part[i], last, idx.sequence_count()));
      }
      last = part[i];
    }
    writer.append({}, {}, part);
  });
}

void copy_sequences(const merge_input& input, bool multimodal, dataset_writer& writer) {
  const auto& idx = input.view();
  const auto item = static_cast<std::int64_t>(formats::size_bytes(idx.type));
  std::vector<std::int32_t> lengths(chunk_entries);
  std::vector<std::int64_t> pointers(chunk_entries);
  std::vector<std::int8_t> modes(multimodal ? chunk_entries : 0);
  std::int64_t expected = 0;
  in_runs(idx.lengths.size(), chunk_entries, [&](auto first, auto count) {
    input.read_index(idx.lengths_offset(), first, std::span(lengths).first(count));
    input.read_index(idx.pointers_offset(), first, std::span(pointers).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      // Pointers of the output are computed from the lengths, so the two must agree here.
      if (lengths[i] < 0 || pointers[i] != expected) {
        throw format_error(
            input.paths().idx, idx.pointers_offset() + 8 * (first + i),
            fmt::format("sequence {} has length {} and pointer {}, expected 0 or more, and {}",
                        first + i, lengths[i], pointers[i], expected));
      }
      expected += lengths[i] * item;
    }
    const auto part = std::span(modes).first(multimodal ? count : 0);
    if (multimodal) {
      input.read_index(idx.document_index_offset() + 8 * idx.document_index.size(), first, part);
    }
    writer.append({}, std::span(lengths).first(count), {}, part);
  });
}

void expect_another_folder(const merge_options& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(io::parent_folder(options.output_prefix), options.input,
                                  ignored)) {
    throw config_error(fmt::format(
        "--output-prefix {}: the output would lie among the inputs, and be merged with them the "
        "next time; name another folder",
        options.output_prefix.string()));
  }
}

void check_fits(const merge_input& input, const merge_input& first, bool multimodal) {
  const auto& idx = input.view();
  if (idx.type != first.view().type) {
    throw config_error(fmt::format("{} holds {}, but {} holds {}; only equal types can be merged",
                                   input.paths().bin.string(), name(idx.type),
                                   first.paths().bin.string(), name(first.view().type)));
  }
  if (multimodal && idx.modes.size() != idx.lengths.size()) {
    throw config_error(fmt::format("--multimodal: {} has no modes", input.paths().idx.string()));
  }
}

}  // namespace

merge_summary merge(const merge_options& options) {
  merge_summary summary;
  summary.prefixes = datasets_in(options.input);
  expect_folder(options.output_prefix);
  expect_another_folder(options);
  const merge_input first(summary.prefixes.front());
  summary.type = first.view().type;
  merged_sidecars sidecars = plan_sidecars(summary.prefixes);
  summary.dropped = sidecars.dropped;
  // All headers are compared before the first byte is copied: hours may lie between the two.
  for (std::size_t i = 0; i < summary.prefixes.size(); ++i) {
    const merge_input input(summary.prefixes[i]);
    check_fits(input, first, options.multimodal);
    if (sidecars.meta) expect_meta_of(input, sidecars.parts[i]);
  }

  dataset_writer writer(options.output_prefix, {.type = summary.type,
                                                .multimodal = options.multimodal,
                                                .checksums = sidecars.sum,
                                                .provenance = sidecars.src,
                                                .quarantine = sidecars.bad});
  if (!options.overwrite) refuse_existing(options.output_prefix);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < summary.prefixes.size(); ++i) {
    const merge_input input(summary.prefixes[i]);
    check_fits(input, first, options.multimodal);  // again: it may have been replaced since
    copy_tokens(input, sidecars.sum, writer);
    copy_documents(input, writer);  // before the sequences: their ends count from here
    copy_sequences(input, options.multimodal, writer);
    if (sidecars.src) {
      append_places(input, sidecars.parts[i], sidecars.changes[i].shift, writer, names);
    }
    if (sidecars.bad) append_bad_lines(input.paths(), sidecars.changes[i], writer);
  }
  const std::string root = writer.finish(names);
  if (sidecars.meta) {
    if (!root.empty()) sidecars.meta->sum_root = root;
    summary.tasks = sidecars.meta->tasks;
    writer.finish_meta(to_json(*sidecars.meta));
  } else {
    writer.sync();
  }
  publish_dataset(writer.paths(), writer.sidecars());
  summary.sequences = writer.sequence_count();
  summary.documents = writer.document_count();
  summary.tokens = writer.token_count();
  return summary;
}

}  // namespace millrace::preprocess
