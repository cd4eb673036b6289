// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/megatron/gpt_order.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/md5.hpp>
#include <millrace/formats/npy.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// The values that identify a GPTDataset in Megatron. Their JSON text is the description file of a
/// cache, and the MD5 of that text is in the file names (formats/spec/megatron_cache.md).
struct MILLRACE_EXPORT gpt_description {
  std::string dataset_path;                 ///< the prefix as typed
  std::optional<std::int64_t> num_samples;  ///< as requested; nullopt means one epoch
  split_part part = split_part::train;
  std::uint32_t random_seed = 1234;
  std::int64_t sequence_length = 0;
  std::optional<std::string> split;  ///< as typed; nullopt if each part has its own data
  python_json tokenizer;             ///< the tokenizer's `unique_identifiers`

  /// Megatron's `unique_identifiers` of the dataset.
  /// @throws config_error  `split` is not a valid split.
  python_json identifiers() const;

  /// The text of the description file.
  std::string text() const { return identifiers().dump(); }

  /// The common prefix of the dataset's cache file names: `<md5>-GPTDataset-<part>`.
  std::string cache_name() const {
    return formats::md5_hex(text()) + "-GPTDataset-" + std::string(name(part));
  }
};

/// The four files in which Megatron caches the indices of a GPTDataset. Their names and contents
/// equal Megatron's, byte for byte (formats/spec/megatron_cache.md). Unlike Megatron, this class
/// publishes them atomically, complete or not at all, and checks them before use.
///
/// The file names are relative to a folder, which is Megatron's `--data-cache-path` or
/// `default_folder`.
class MILLRACE_EXPORT gpt_cache {
 public:
  gpt_cache(std::filesystem::path folder, const gpt_description& description)
      : folder_(std::move(folder)), text_(description.text()), name_(description.cache_name()) {}

  /// Megatron's default cache folder.
  static std::filesystem::path default_folder(const std::filesystem::path& prefix) {
    return prefix / "cache" / "GPTDataset_indices";
  }

  std::filesystem::path description_path() const { return path("description.txt"); }
  std::filesystem::path document_path() const { return path("document_index.npy"); }
  std::filesystem::path sample_path() const { return path("sample_index.npy"); }
  std::filesystem::path shuffle_path() const { return path("shuffle_index.npy"); }

  /// Returns the mapped indices. Returns nullopt if a file is missing or cannot be parsed (because
  /// it is truncated or damaged), or if the description does not match the hash in its file name.
  ///
  /// Compares the header of each file with `plan`. Also checks 64 samples, spread over the index,
  /// against `lengths`. Other samples are checked when they are requested, so a damaged number may
  /// be found late. A damaged number that describes another valid sample is never found.
  /// `check_level::full` checks every number now (see `verify_gpt_index`). The files must not
  /// shrink while they are mapped.
  ///
  /// @param why  if given, is set to the reason when nullopt is returned
  /// @throws format_error  a number is wrong; or the files are complete, but were built with other
  ///                       options or from other data under the same path (Megatron's file names do
  ///                       not show this difference).
  /// @throws io_error      a file exists but cannot be read.
  std::optional<gpt_order> load(const gpt_plan& plan, length_column lengths,
                                std::string* why = nullptr,
                                check_level check = check_level::quick) const;

  /// Builds and writes the indices. All files are synced to disk before the first is published; the
  /// description is published last. Replaces existing files.
  ///
  /// @param threads  as `build_gpt_index`
  /// @throws io::file_busy  another process is writing these files.
  /// @throws io_error       a file cannot be written.
  void build(const gpt_plan& plan, formats::unaligned_span<std::int32_t> lengths,
             const std::string& whose, int threads = 1) const;

  /// Calls `load`; if that returns nullopt, calls `build` and then `load`. Waits for another
  /// process that builds the same indices. Removes partial files that a killed process left beside
  /// a complete cache.
  ///
  /// @param built  if given, is set to true if the indices were built, otherwise to false
  gpt_order load_or_build(const gpt_plan& plan, formats::unaligned_span<std::int32_t> lengths,
                          const std::string& whose, int threads = 1, bool* built = nullptr,
                          check_level check = check_level::quick) const;

 private:
  std::filesystem::path path(const char* what) const { return folder_ / (name_ + "-" + what); }
  // In the order in which `build` opens the files. `build` commits the description last.
  std::array<std::filesystem::path, 4> files_as_built() const {
    return {description_path(), document_path(), sample_path(), shuffle_path()};
  }
  [[noreturn]] static void throw_unfit(const format_error& e);

  std::filesystem::path folder_;
  std::string text_;
  std::string name_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

struct mapped_npy {
  io::file_mapping file;
  formats::npy_view npy;
  lost_page_watch watch;  // watches the file's mapping, so it is destroyed first
};

/// @throws format_error  the file has another text.
MILLRACE_EXPORT void expect_description(const std::filesystem::path& path,
                                        const std::string& expected);

MILLRACE_EXPORT mapped_npy map_npy(const std::filesystem::path& path);

/// An `.npy` file whose array can be written in any order.
class npy_file {
 public:
  template <class T>
  static npy_file of(std::filesystem::path path, const std::vector<std::uint64_t>& shape) {
    npy_file file(std::move(path));
    const auto header = formats::encode_npy_header(formats::npy_type_of<T>(), shape);
    file.offset_ = header.size();
    io::pwrite_all(file.file_.fd(), header, 0, file.file_.partial_path());
    return file;
  }

  void put(std::span<const std::byte> bytes, std::uint64_t at = 0) const {
    io::pwrite_all(file_.fd(), bytes, offset_ + at, file_.partial_path());
  }
  io::atomic_file& file() noexcept { return file_; }

 private:
  explicit npy_file(std::filesystem::path path) : file_(std::move(path)) {}

  io::atomic_file file_;
  std::uint64_t offset_ = 0;
};

}  // namespace detail

}  // namespace millrace::dataset
