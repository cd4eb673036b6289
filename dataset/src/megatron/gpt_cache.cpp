// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_cache.hpp>

#include <algorithm>
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
#include <variant>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/megatron/gpt_index.hpp>
#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_order.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/detail/megatron/verify_gpt_index.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/npy.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

MILLRACE_INLINE python_json gpt_description::identifiers() const {
  python_json all = python_json::object();
  all.set("class", python_json::string("GPTDataset"));
  all.set("dataset_path", python_json::string(dataset_path));
  all.set("num_samples", num_samples ? python_json::integer(*num_samples) : python_json());
  all.set("index_split", python_json::string(name(part)));
  all.set("random_seed", python_json::integer(random_seed));
  all.set("sequence_length", python_json::integer(sequence_length));
  all.set("split", split ? python_json::string(*split) : python_json());
  all.set("split_matrix", split ? split_matrix(*split).json() : python_json());
  all.set("tokenizer", tokenizer);
  return all;
}

namespace detail {

MILLRACE_INLINE void expect_description(const std::filesystem::path& path,
                                        const std::string& expected) {
  const auto file = io::file_mapping::or_copy(path);
  const auto bytes = file.bytes();
  const std::string_view found(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (found == expected) return;
  const auto end = std::ranges::mismatch(found, expected).in1;
  throw format_error(path, static_cast<std::uint64_t>(end - found.begin()),
                     "the description has the MD5 " + formats::md5_hex(found) + ", expected " +
                         formats::md5_hex(expected) + ", which is in its name");
}

MILLRACE_INLINE mapped_npy map_npy(const std::filesystem::path& path) {
  mapped_npy mapped{io::file_mapping::or_copy(path), {}, {}};
  mapped.watch = lost_page_watch(mapped.file.bytes());
  try {
    mapped.npy = formats::parse_npy(mapped.file.bytes());
  } catch (const format_error& e) {
    mapped.watch.check_there(path);
    throw e.in(path);
  }
  return mapped;
}

}  // namespace detail

MILLRACE_INLINE void gpt_cache::throw_unfit(const format_error& e) {
  throw format_error(e.path(), e.offset(),
                     e.problem() +
                         ": the cache was made for other data at the same path or with other "
                         "options, or it is damaged. Remove its files, or pass another "
                         "--data-cache-path");
}

MILLRACE_INLINE std::optional<gpt_order> gpt_cache::load(const gpt_plan& plan,
                                                         length_column lengths, std::string* why,
                                                         check_level check) const {
  const auto nothing = [&](std::string reason) {
    if (why != nullptr) *why = std::move(reason);
    return std::nullopt;
  };
  struct files {
    detail::mapped_npy document, sample, shuffle;
  };
  auto all = std::make_shared<files>();
  try {
    detail::expect_description(description_path(), text_);
    all->document = detail::map_npy(document_path());
    all->sample = detail::map_npy(sample_path());
    all->shuffle = detail::map_npy(shuffle_path());
  } catch (const format_error& e) {
    return nothing(e.what());
  } catch (const io_error& e) {
    if (e.code() != ENOENT) throw;
    return nothing(e.path().string() + ": no such file");
  }

  const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const auto column = [](const detail::mapped_npy& mapped, formats::npy_type narrow,
                         index_numbers::type narrow_type, bool may_be_wide,
                         const std::vector<std::uint64_t>& shape,
                         const std::filesystem::path& path) {
    const bool wide = may_be_wide && mapped.npy.type == formats::npy_type_of<std::int64_t>();
    if ((mapped.npy.type != narrow && !wide) || mapped.npy.shape != shape) {
      throw_unfit({path, formats::npy_prefix_bytes,
                   "has dtype " + formats::npy_descr(mapped.npy.type) + " and shape " +
                       formats::npy_shape_text(mapped.npy.shape) + ", expected " +
                       formats::npy_descr(narrow) + (may_be_wide ? " or <i8 and " : " and ") +
                       formats::npy_shape_text(shape)});
    }
    return index_numbers(wide ? index_numbers::type::int64 : narrow_type, mapped.npy.data);
  };
  const auto offset = [](const detail::mapped_npy& mapped) {
    return static_cast<std::uint64_t>(mapped.file.bytes().size() - mapped.npy.data.size());
  };
  gpt_index_view view;
  const auto int32 = formats::npy_type_of<std::int32_t>();
  view.document = column(all->document, int32, index_numbers::type::int32, false,
                         {size(plan.document_entries())}, document_path());
  // Some releases of Megatron write int64 where other releases write int32; both are valid.
  view.sample = column(all->sample, int32, index_numbers::type::int32, true,
                       {size(plan.samples) + 1, 2}, sample_path());
  view.shuffle = column(all->shuffle, formats::npy_type_of<std::uint32_t>(),
                        index_numbers::type::uint32, true, {size(plan.samples)}, shuffle_path());
  view.document_path = document_path();
  view.sample_path = sample_path();
  view.shuffle_path = shuffle_path();
  view.document_offset = offset(all->document);
  view.sample_offset = offset(all->sample);
  view.shuffle_offset = offset(all->shuffle);
  view.document_watch = &all->document.watch;
  view.sample_watch = &all->sample.watch;
  view.shuffle_watch = &all->shuffle.watch;
  view.owner = std::move(all);

  gpt_order order(plan, lengths, std::move(view));
  try {
    if (check == check_level::full) {
      verify_gpt_index(plan, lengths, order.index());
      order.index().check_there();
      return order;
    }
    // Check samples that are spread over the index, including the first and the last. If the index
    // was built for other sequence lengths, some of these samples contradict `lengths`.
    constexpr std::int64_t looks = 64;
    std::vector<piece> pieces;
    for (std::int64_t i = 0; i < std::min(looks, order.size()); ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(looks - 1);
      const std::int64_t k =
          order.size() <= looks
              ? i
              : static_cast<std::int64_t>(share * static_cast<double>(order.size() - 1));
      (void)order.unshuffled_sample(k, pieces);
      (void)order.sample(k, pieces);
    }
  } catch (const format_error& e) {
    order.index().check_there();
    throw_unfit(e);
  }
  return order;
}

MILLRACE_INLINE void gpt_cache::build(const gpt_plan& plan,
                                      formats::unaligned_span<std::int32_t> lengths,
                                      const std::string& whose, int threads) const {
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  if (problem) throw io_error(folder_, "mkdir", problem.value());

  const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  io::atomic_file description(description_path());
  auto document =
      detail::npy_file::of<std::int32_t>(document_path(), {size(plan.document_entries())});
  const gpt_index index = build_gpt_index(
      plan, lengths, whose, threads, [&](std::int64_t first, std::span<const std::int32_t> part) {
        document.put(std::as_bytes(part), sizeof(std::int32_t) * static_cast<std::size_t>(first));
      });
  description.append(std::as_bytes(std::span(text_)));

  const std::vector<std::uint64_t> rows = {size(plan.samples) + 1, 2};
  auto sample = plan.wide_sample_index ? detail::npy_file::of<std::int64_t>(sample_path(), rows)
                                       : detail::npy_file::of<std::int32_t>(sample_path(), rows);
  std::visit([&](const auto& array) { sample.put(array.bytes()); }, index.sample);
  auto shuffle = plan.wide_shuffle_index
                     ? detail::npy_file::of<std::int64_t>(shuffle_path(), {size(plan.samples)})
                     : detail::npy_file::of<std::uint32_t>(shuffle_path(), {size(plan.samples)});
  std::visit([&](const auto& array) { shuffle.put(array.bytes()); }, index.shuffle);

  for (io::atomic_file* file : {&document.file(), &sample.file(), &shuffle.file(), &description}) {
    file->sync();
  }
  for (io::atomic_file* file : {&document.file(), &sample.file(), &shuffle.file(), &description}) {
    file->commit();
  }
}

MILLRACE_INLINE gpt_order gpt_cache::load_or_build(const gpt_plan& plan,
                                                   formats::unaligned_span<std::int32_t> lengths,
                                                   const std::string& whose, int threads,
                                                   bool* built, check_level check) const {
  if (built != nullptr) *built = false;
  for (bool done = false;;) {
    std::string why;
    if (auto order = load(plan, lengths, &why, check)) {
      io::remove_stale_partials(files_as_built());
      return *std::move(order);
    }
    if (done) throw error("the cache changed immediately after it was built: " + why);
    try {
      build(plan, lengths, whose, threads);
      done = true;
      if (built != nullptr) *built = true;
    } catch (const io::file_busy&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

}  // namespace millrace::dataset
