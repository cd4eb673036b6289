// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/blend_cache.hpp>

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

#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/large_array.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

MILLRACE_INLINE blended_sample blend_index::operator[](std::int64_t i) const {
  assert(0 <= i && i < size());
  const auto at = static_cast<std::size_t>(i);
  const std::int64_t dataset = datasets_[at];
  const std::int64_t sample = samples_[at];
  files_->dataset.watch.check_there(paths_[0]);
  files_->sample.watch.check_there(paths_[1]);
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

MILLRACE_INLINE void blend_index::verify() const {
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

namespace detail {

template <class T>
formats::unaligned_span<T> elements_of(const formats::npy_view& npy,
                                       const std::filesystem::path& path) {
  try {
    return npy.elements<T>();
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

}  // namespace detail

MILLRACE_INLINE std::optional<blend_index> blend_cache::load(std::string* why,
                                                             check_level check) const {
  const auto nothing = [&](std::string reason) {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  auto files = std::make_shared<blend_index::files>();
  blend_index index;
  try {
    detail::expect_description(description_path(), text_);
    files->dataset = detail::map_npy(dataset_path());
    files->sample = detail::map_npy(sample_path());
    const std::vector<std::uint64_t> shape = {static_cast<std::uint64_t>(recipe_.size())};
    const auto expect_shape = [&](const formats::npy_view& npy, const std::filesystem::path& path) {
      if (npy.shape == shape) return;
      throw format_error(path, formats::npy_prefix_bytes,
                         "has shape " + formats::npy_shape_text(npy.shape) + ", expected " +
                             formats::npy_shape_text(shape) + ", the samples of the blend");
    };
    expect_shape(files->dataset.npy, dataset_path());
    expect_shape(files->sample.npy, sample_path());
    index.datasets_ = detail::elements_of<std::int16_t>(files->dataset.npy, dataset_path());
    index.samples_ = detail::elements_of<std::int64_t>(files->sample.npy, sample_path());
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

MILLRACE_INLINE void blend_cache::build(blend_rounding rounding) const {
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

MILLRACE_INLINE blend_index blend_cache::load_or_build(blend_rounding rounding, bool* built,
                                                       check_level check) const {
  if (built != nullptr) *built = false;
  for (bool done = false;;) {
    std::string why;
    if (auto index = load(&why, check)) {
      io::remove_stale_partials(files_as_built());
      return *std::move(index);
    }
    if (done) throw error("the cache changed immediately after it was built: " + why);
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
