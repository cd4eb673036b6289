// SPDX-License-Identifier: Apache-2.0
#include "merge.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "dataset_writer.hpp"
#include "output_check.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t chunk_entries = std::size_t{64} << 10;

bool is_regular(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// The prefix of the dataset that a file of the folder belongs to: its .bin, its .idx, or PREFIX and
// one other suffix.
std::filesystem::path prefix_of(const std::filesystem::path& file) {
  // A link to nowhere is a missing shard, not one shard fewer.
  if (!is_regular(file)) throw io_error(file, "open (not a regular file)", EINVAL);
  auto prefix = file;
  prefix.replace_extension();
  const dataset_paths paths(prefix);
  for (const auto& path : {paths.bin, paths.idx}) {
    if (is_regular(path)) continue;
    throw config_error(
        file.extension() == ".partial"
            ? fmt::format("{} is what a stopped run left; remove it", file.string())
            : fmt::format("{} belongs to no dataset: there is no {}; move it out of the folder, or "
                          "add that",
                          file.string(), path.string()));
  }
  return prefix;
}

std::vector<std::filesystem::path> find_prefixes(const std::filesystem::path& folder) {
  std::set<std::string> prefixes;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    if (!entries->is_directory(ignored)) prefixes.insert(prefix_of(entries->path()).string());
  }
  if (error) throw io_error(folder, "opendir", error.value());
  if (prefixes.empty()) {
    throw config_error(
        fmt::format("--input {}: the folder has no .bin/.idx pair", folder.string()));
  }
  return {prefixes.begin(), prefixes.end()};
}

/// One dataset to merge, its header checked. Only the header's pages of the mapping are touched:
/// the arrays are read in chunks, so that memory does not grow with them.
class merge_input {
 public:
  explicit merge_input(const std::filesystem::path& prefix)
      : paths_(prefix),
        mapping_(paths_.idx),
        idx_(io::open_read_only(paths_.idx)),
        bin_(io::open_read_only(paths_.bin)) {
    try {
      view_ = formats::parse_mmidx(mapping_.bytes());
    } catch (const format_error& e) {
      throw e.in(paths_.idx);
    }
    // Whoever replaces a dataset removes its .idx first: see formats/spec/mmidx.md.
    if (io::identity_of(paths_.idx) != mapping_.identity()) {
      throw io_error(paths_.idx, "open (it is being replaced by another process)", ESTALE);
    }
    const std::uint64_t expected = formats::bin_size_bytes(view_);
    const std::uint64_t size = io::regular_file_size(bin_, paths_.bin);
    if (size != expected) {
      throw format_error(
          paths_.bin, std::min(size, expected),
          fmt::format("expected {} bytes as its .idx says, found {}", expected, size));
    }
  }

  const formats::mmidx_view& view() const noexcept { return view_; }
  const dataset_paths& paths() const noexcept { return paths_; }

  /// Fills `out` with entries of an array of the .idx that starts at `array`, from `first` on.
  template <class T>
  void read_index(std::uint64_t array, std::uint64_t first, std::span<T> out) const {
    read(idx_, paths_.idx, array + first * sizeof(T), std::as_writable_bytes(out));
  }
  void read_tokens(std::uint64_t offset, std::span<std::byte> out) const {
    read(bin_, paths_.bin, offset, out);
  }

 private:
  static void read(const io::unique_fd& fd, const std::filesystem::path& path, std::uint64_t offset,
                   std::span<std::byte> out) {
    if (io::pread_some(fd, out, offset, path) != out.size()) {
      throw format_error(path, offset, "the file became shorter while it was read");
    }
  }

  dataset_paths paths_;
  io::file_mapping mapping_;
  io::unique_fd idx_;
  io::unique_fd bin_;
  formats::mmidx_view view_;
};

/// Calls `work(first, count)` for 0 .. total - 1 in runs of at most `run` entries.
template <class Work>
void in_runs(std::uint64_t total, std::size_t run, Work&& work) {
  for (std::uint64_t first = 0; first < total; first += run) {
    work(first, static_cast<std::size_t>(std::min<std::uint64_t>(run, total - first)));
  }
}

void copy_tokens(const merge_input& input, dataset_writer& writer) {
  std::vector<std::byte> chunk(chunk_bytes);
  in_runs(formats::bin_size_bytes(input.view()), chunk.size(), [&](auto first, auto count) {
    input.read_tokens(first, std::span(chunk).first(count));
    writer.append(std::span(chunk).first(count), {}, {});
  });
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
  merge_summary summary{.prefixes = find_prefixes(options.input)};
  expect_folder(options.output_prefix);
  expect_another_folder(options);
  const merge_input first(summary.prefixes.front());
  summary.type = first.view().type;
  // All headers are compared before the first byte is copied: hours may lie between the two.
  for (const auto& prefix : summary.prefixes) {
    check_fits(merge_input(prefix), first, options.multimodal);
  }

  dataset_writer writer(options.output_prefix,
                        {.type = summary.type, .multimodal = options.multimodal});
  if (!options.overwrite) refuse_existing(options.output_prefix);
  for (const auto& prefix : summary.prefixes) {
    const merge_input input(prefix);
    check_fits(input, first, options.multimodal);  // again: it may have been replaced since
    copy_tokens(input, writer);
    copy_documents(input, writer);  // before the sequences: their ends count from here
    copy_sequences(input, options.multimodal, writer);
  }
  (void)writer.finish({});
  writer.sync();
  publish_dataset(writer.paths(), writer.sidecars());
  summary.sequences = writer.sequence_count();
  summary.documents = writer.document_count();
  summary.tokens = writer.token_count();
  return summary;
}

}  // namespace millrace::preprocess
