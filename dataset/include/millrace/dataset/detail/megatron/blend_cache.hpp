// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_recipe.hpp>
#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

namespace millrace::dataset {

/// The origin of one sample of a blend: a dataset, and a sample of that dataset.
struct blended_sample {
  std::size_t dataset = 0;
  std::int64_t sample = 0;  ///< index in that dataset
  bool operator==(const blended_sample&) const = default;
};

/// A blend read from a cache: maps sample i of the blend to a dataset and a sample of that dataset.
/// Copies share the mapped files. Many threads may read it at once.
class MILLRACE_EXPORT blend_index {
 public:
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(datasets_.size()); }

  /// @pre 0 <= i < size()
  /// @throws format_error  the entry refers to a dataset or a sample that does not exist
  blended_sample operator[](std::int64_t i) const;

  /// Checks every entry.
  /// @throws format_error  an entry is not the next sample of its dataset
  void verify() const;

 private:
  friend class blend_cache;
  std::uint64_t sample_byte(std::size_t entry) const noexcept {
    const detail::mapped_npy& mapped = files_->sample;
    return mapped.file.bytes().size() - mapped.npy.data.size() + entry * sizeof(std::int64_t);
  }
  struct files {
    detail::mapped_npy dataset, sample;
  };
  std::shared_ptr<const files> files_;
  formats::unaligned_span<std::int16_t> datasets_{std::span<const std::byte>()};
  formats::unaligned_span<std::int64_t> samples_{std::span<const std::byte>()};
  std::array<std::filesystem::path, 2> paths_;
  std::vector<std::int64_t> lengths_;
};

/// The three files in which Megatron caches a BlendedDataset. They are in the folder of
/// `--data-cache-path`, and their names and contents equal Megatron's, byte for byte. Unlike
/// Megatron, this class publishes them atomically: complete or not at all.
///
/// The file names do not show how a blend was rounded (see `blend_rounding`). If an ARM machine
/// filled the folder, the blends in the folder are `fused`.
class MILLRACE_EXPORT blend_cache {
 public:
  /// @param datasets  `unique_identifiers` of the blended datasets, in the order of the blend
  blend_cache(std::filesystem::path folder, blend_recipe recipe, std::vector<python_json> datasets,
              split_part part)
      : folder_(std::move(folder)),
        recipe_(std::move(recipe)),
        text_(recipe_.identifiers(std::move(datasets)).dump()),
        name_(blend_cache_name(text_, part)) {}

  const std::string& text() const noexcept { return text_; }
  std::filesystem::path description_path() const { return path("description.txt"); }
  std::filesystem::path dataset_path() const { return path("dataset_index.npy"); }
  std::filesystem::path sample_path() const { return path("dataset_sample_index.npy"); }

  /// Returns the mapped blend. Returns nullopt if a file is missing, truncated or damaged, or does
  /// not have the blend's length.
  ///
  /// @param why    if given, is set to the reason when nullopt is returned
  /// @param check  `full` also checks that every entry is the next sample of its dataset. It does
  ///               not check whether the right dataset was chosen; to check this, build the blend
  ///               again
  /// @throws io_error  a file exists but cannot be read.
  std::optional<blend_index> load(std::string* why = nullptr,
                                  check_level check = check_level::quick) const;

  /// Computes the blend and writes the files. All three files are synced to disk before the first
  /// one is published; the description is published last. Replaces existing files.
  ///
  /// @throws config_error   as `blend_recipe::fill`
  /// @throws io::file_busy  another process is writing these files.
  /// @throws io_error       a file cannot be written.
  void build(blend_rounding rounding = blend_rounding::twice) const;

  /// Calls `load`; if that returns nullopt, calls `build` and then `load`. Waits for another
  /// process that builds the same blend. Removes partial files that a killed process left beside a
  /// complete cache.
  ///
  /// @param built  if given, is set to true if the blend was built, otherwise to false
  blend_index load_or_build(blend_rounding rounding = blend_rounding::twice, bool* built = nullptr,
                            check_level check = check_level::quick) const;

 private:
  std::filesystem::path path(const char* what) const { return folder_ / (name_ + "-" + what); }
  // In the order in which `build` opens the files. `build` commits the description last.
  std::array<std::filesystem::path, 3> files_as_built() const {
    return {description_path(), dataset_path(), sample_path()};
  }

  std::filesystem::path folder_;
  blend_recipe recipe_;
  std::string text_;
  std::string name_;
};

}  // namespace millrace::dataset
