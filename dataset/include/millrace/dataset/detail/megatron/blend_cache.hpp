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

/// Where a sample of a blend comes from.
struct blended_sample {
  std::size_t dataset = 0;
  std::int64_t sample = 0;  ///< of that dataset
  bool operator==(const blended_sample&) const = default;
};

/// A blend, out of a cache: sample i of it is which sample of which dataset. Copies share the
/// mapped files. Reading from many threads at once is safe.
class MILLRACE_EXPORT blend_index {
 public:
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(datasets_.size()); }

  /// @pre 0 <= i < size()
  /// @throws format_error  the entry is of no dataset, or of no sample of it
  blended_sample operator[](std::int64_t i) const;

  /// Looks at every entry.
  /// @throws format_error  one is not the next sample of its dataset
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

/// The three files in which Megatron keeps a BlendedDataset, under its names and byte for byte as
/// it writes them, in the folder of --data-cache-path; but they appear whole or not at all.
///
/// The rounding is not in their names: a folder that has been filled on ARM holds `fused` ones.
class MILLRACE_EXPORT blend_cache {
 public:
  /// @param datasets  identifiers of the blended datasets, in their order
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

  /// The blend, mapped; nothing if a file is missing, cut off, damaged or of another length.
  ///
  /// @param why    if given, is set to what was wrong where the answer is nothing
  /// @param check  full: every entry must be the next sample of its dataset. Whether it is the
  ///               right dataset's turn only a build would tell
  /// @throws io_error  a file is there and cannot be read.
  std::optional<blend_index> load(std::string* why = nullptr,
                                  check_level check = check_level::quick) const;

  /// Blends, and writes the files: all are safe on the disk before the first shows, and the
  /// description is the last. Replaces what is there.
  ///
  /// @throws config_error   as blend_recipe::fill
  /// @throws io::file_busy  another process is writing them.
  /// @throws io_error       a file cannot be written.
  void build(blend_rounding rounding = blend_rounding::twice) const;

  /// `load`, and where that has nothing, `build` before it. Waits for another process that builds
  /// the same. Removes the partial files that a killed process left beside a whole cache.
  ///
  /// @param built  if given, is set to whether it was built
  blend_index load_or_build(blend_rounding rounding = blend_rounding::twice, bool* built = nullptr,
                            check_level check = check_level::quick) const;

 private:
  std::filesystem::path path(const char* what) const { return folder_ / (name_ + "-" + what); }
  // `build` opens the first of them first and commits it last.
  std::array<std::filesystem::path, 3> files_as_built() const {
    return {description_path(), dataset_path(), sample_path()};
  }

  std::filesystem::path folder_;
  blend_recipe recipe_;
  std::string text_;
  std::string name_;
};

}  // namespace millrace::dataset
