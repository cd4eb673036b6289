// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/megatron/blend_recipe.hpp>
#include <millrace/dataset/megatron/blend_rounding.hpp>
#include <millrace/dataset/megatron/gpt_cache.hpp>
#include <millrace/dataset/megatron/large_array.hpp>
#include <millrace/formats/npy.hpp>
#include <millrace/formats/unaligned_span.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// Where a sample of a blend comes from.
struct blended_sample {
  std::size_t dataset = 0;
  std::int64_t sample = 0;  ///< of that dataset
  bool operator==(const blended_sample&) const = default;
};

/// A blend, out of a cache: sample i of it is which sample of which dataset. Copies share the
/// mapped files. Reading from many threads at once is safe.
class blend_index {
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
class blend_cache {
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

// ---------------------------------------------------------------------------------------------

inline blended_sample blend_index::operator[](std::int64_t i) const {
  assert(0 <= i && i < size());
  const auto at = static_cast<std::size_t>(i);
  const std::int64_t dataset = datasets_[at];
  const std::int64_t sample = samples_[at];
  io::check_there(files_->dataset.watch, paths_[0]);
  io::check_there(files_->sample.watch, paths_[1]);
  if (dataset < 0 || dataset >= static_cast<std::int64_t>(lengths_.size())) {
    const detail::mapped_npy& mapped = files_->dataset;
    const std::size_t header = mapped.file.bytes().size() - mapped.npy.data.size();
    throw format_error(paths_[0], header + at * sizeof(std::int16_t),
                       "entry " + std::to_string(i) + " is dataset " + std::to_string(dataset) +
                           ", expected 0 to " + std::to_string(lengths_.size() - 1));
  }
  const auto d = static_cast<std::size_t>(dataset);
  if (sample < 0 || sample >= lengths_[d]) {
    throw format_error(paths_[1], sample_byte(at),
                       "entry " + std::to_string(i) + " is sample " + std::to_string(sample) +
                           " of dataset " + std::to_string(dataset) + ", expected 0 to " +
                           std::to_string(lengths_[d] - 1));
  }
  return {d, sample};
}

inline void blend_index::verify() const {
  std::vector<std::int64_t> next(lengths_.size());
  for (std::int64_t i = 0; i < size(); ++i) {
    const blended_sample found = (*this)[i];
    const std::int64_t expected = next[found.dataset]++;
    if (found.sample == expected) continue;
    throw format_error(paths_[1], sample_byte(static_cast<std::size_t>(i)),
                       "entry " + std::to_string(i) + " is sample " + std::to_string(found.sample) +
                           " of dataset " + std::to_string(found.dataset) + ", expected " +
                           std::to_string(expected) + ", its next one");
  }
}

inline std::optional<blend_index> blend_cache::load(std::string* why, check_level check) const {
  const auto nothing = [&](std::string reason) {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  auto files = std::make_shared<blend_index::files>();
  blend_index index;
  try {
    const io::file_mapping description(description_path());
    const auto bytes = description.bytes();
    if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) != text_) {
      return nothing(description_path().string() + ": not the description that its name is for");
    }
    files->dataset = detail::map_npy(dataset_path());
    files->sample = detail::map_npy(sample_path());
    const std::vector<std::uint64_t> shape = {static_cast<std::uint64_t>(recipe_.size())};
    if (files->dataset.npy.shape != shape) {
      return nothing(dataset_path().string() + ": not as long as the blend");
    }
    if (files->sample.npy.shape != shape) {
      return nothing(sample_path().string() + ": not as long as the blend");
    }
    index.datasets_ = files->dataset.npy.elements<std::int16_t>();
    index.samples_ = files->sample.npy.elements<std::int64_t>();
  } catch (const format_error& e) {
    return nothing(e.what());
  } catch (const io_error& e) {
    if (e.code() != ENOENT) throw;
    return nothing(e.path().string() + ": no such file");
  }
  index.files_ = std::move(files);
  index.paths_ = {dataset_path(), sample_path()};
  index.lengths_.assign(recipe_.lengths().begin(), recipe_.lengths().end());
  if (check == check_level::full) {
    try {
      index.verify();
    } catch (const format_error& e) {
      return nothing(e.what());
    }
  }
  return index;
}

inline void blend_cache::build(blend_rounding rounding) const {
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  if (problem) throw io_error(folder_, "mkdir", problem.value());

  const auto size = static_cast<std::size_t>(recipe_.size());
  io::atomic_file description(description_path());
  auto dataset = detail::npy_file::of<std::int16_t>(dataset_path(), {size});
  auto sample = detail::npy_file::of<std::int64_t>(sample_path(), {size});
  large_array<std::int16_t> datasets(size);
  large_array<std::int64_t> samples(size);
  recipe_.fill({datasets.numbers(), samples.numbers()}, rounding);
  description.append(std::as_bytes(std::span(text_)));
  dataset.put(datasets.bytes());
  sample.put(samples.bytes());
  for (io::atomic_file* file : {&dataset.file(), &sample.file(), &description}) file->sync();
  for (io::atomic_file* file : {&dataset.file(), &sample.file(), &description}) file->commit();
}

inline blend_index blend_cache::load_or_build(blend_rounding rounding, bool* built,
                                              check_level check) const {
  if (built != nullptr) *built = false;
  for (bool done = false;;) {
    std::string why;
    if (auto index = load(&why, check)) {
      io::remove_stale_partials(files_as_built());
      return *std::move(index);
    }
    if (done) throw error("the cache was just built, and is no more what was written: " + why);
    try {
      build(rounding);
      done = true;
      if (built != nullptr) *built = true;
    } catch (const io::file_busy&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

}  // namespace millrace::dataset
