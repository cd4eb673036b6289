// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/document_content.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/dtype.hpp>

#include "content_hash.hpp"
#include "share_blocks.hpp"

namespace millrace::dataset {

namespace detail {

inline bool is_float(formats::dtype type) noexcept {
  return type == formats::dtype::float32 || type == formats::dtype::float64;
}

/// Hashes and compares documents of several datasets. Used by one thread.
class document_reader {
 public:
  document_reader(std::span<const indexed_dataset* const> datasets, formats::dtype type, bool modes)
      : datasets_(datasets), ids_(type), modes_(modes) {}

  std::uint64_t hash(const listed_document& which) {
    const indexed_dataset& data = of(which);
    content_hash hash;
    ids_.add_to(hash, data.document_tokens(which.document));
    const document_range sequences = data.document(which.document);
    hash.add_number(static_cast<std::uint64_t>(sequences.size()));
    for (std::int64_t s = sequences.first; s < sequences.last; ++s) {
      hash.add_number(static_cast<std::uint64_t>(data.sequence_length(s)));
      if (has_modes(data)) hash.add_number(static_cast<std::uint8_t>(data.mode(s)));
    }
    return hash.value();
  }

  bool equal(const listed_document& x, const listed_document& y) {
    const indexed_dataset& a = of(x);
    const indexed_dataset& b = of(y);
    const document_range in_a = a.document(x.document);
    const document_range in_b = b.document(y.document);
    if (in_a.size() != in_b.size()) return false;
    for (std::int64_t s = 0; s < in_a.size(); ++s) {
      if (a.sequence_length(in_a.first + s) != b.sequence_length(in_b.first + s)) return false;
      if (has_modes(a) && a.mode(in_a.first + s) != b.mode(in_b.first + s)) return false;
    }
    return ids_.equal(a.document_tokens(x.document), b.document_tokens(y.document));
  }

 private:
  const indexed_dataset& of(const listed_document& which) const {
    return *datasets_[static_cast<std::size_t>(which.dataset)];
  }
  bool has_modes(const indexed_dataset& data) const noexcept {
    return modes_ && data.is_multimodal();
  }

  std::span<const indexed_dataset* const> datasets_;
  id_reader ids_;
  bool modes_;
};

/// Numbers the groups among the documents [first, last) of a sorted list, whose hashes are equal.
/// The number of a group is the place of its first document in the list.
inline void number_groups(std::vector<listed_document>& list, std::size_t first, std::size_t last,
                          document_reader& reader) {
  // Nearly always, all are equal to the first.
  std::vector<std::size_t> firsts;
  for (std::size_t i = first; i < last; ++i) {
    const auto same = std::ranges::find_if(
        firsts, [&](std::size_t other) { return reader.equal(list[other], list[i]); });
    list[i].group = same == firsts.end() ? i : *same;
    if (same == firsts.end()) firsts.push_back(i);
  }
}

}  // namespace detail

MILLRACE_INLINE formats::dtype common_id_type(formats::dtype a, formats::dtype b) {
  if (a == b) return a;
  if (detail::is_float(a) != detail::is_float(b)) {
    throw config_error("tokens of " + std::string(formats::name(a)) + " and of " +
                       std::string(formats::name(b)) +
                       " cannot be compared; expected two integer types, or two float types");
  }
  if (detail::is_float(a)) return formats::dtype::float64;
  const bool is_wide = a == formats::dtype::int64 || b == formats::dtype::int64;
  return is_wide ? formats::dtype::int64 : formats::dtype::int32;
}

MILLRACE_INLINE std::span<const std::byte> ids_as(formats::dtype type, const token_view& ids,
                                                  std::vector<std::byte>& buffer) {
  if (ids.type() == type) return ids.bytes();
  buffer.resize(static_cast<std::size_t>(ids.size()) * formats::size_bytes(type));
  formats::with_type(type, [&]<class T>(T) {
    if constexpr (sizeof(T) >= 4 && !std::is_same_v<T, float>) {
      // The buffer of a vector is aligned for any of these types.
      ids.copy_to(
          std::span<T>(reinterpret_cast<T*>(buffer.data()), static_cast<std::size_t>(ids.size())));
    } else {
      assert(false);
    }
  });
  return buffer;
}

MILLRACE_INLINE void group_equal_documents(std::span<const indexed_dataset* const> datasets,
                                           std::vector<listed_document>& list,
                                           const grouping_options& options) {
  if (list.empty()) return;
  formats::dtype type = datasets.front()->type();
  std::vector<lost_page_watch> watches;
  for (const indexed_dataset* data : datasets) {
    type = common_id_type(type, data->type());
    watches.emplace_back(data->stream().bytes());
  }
  const auto check_there = [&] {
    for (std::size_t i = 0; i < datasets.size(); ++i)
      watches[i].check_there(datasets[i]->bin_path());
  };

  constexpr std::size_t block = 256;
  const std::uint64_t blocks = (list.size() + block - 1) / block;
  std::mutex mutex;
  std::int64_t done = 0;
  detail::share_blocks(blocks, options.workers, [&] {
    return [&, reader = detail::document_reader(datasets, type, options.modes)](
               std::uint64_t number) mutable {
      const auto first = static_cast<std::size_t>(number) * block;
      const std::size_t last = std::min(first + block, list.size());
      std::int64_t tokens = 0;
      for (std::size_t i = first; i < last; ++i) {
        list[i].group = reader.hash(list[i]);
        const auto& data = *datasets[static_cast<std::size_t>(list[i].dataset)];
        tokens += data.document_tokens(list[i].document).size();
      }
      check_there();
      if (!options.progress) return;
      const std::scoped_lock lock(mutex);
      options.progress(done += tokens);
    };
  });

  const auto place = [](const listed_document& each) {
    return std::pair(each.dataset, each.document);
  };
  std::ranges::sort(list, {}, [&](const listed_document& each) {
    return std::tuple(each.group, each.dataset, each.document);
  });
  // The numbers of groups replace the hashes, so remember first where the groups begin.
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == 0 || list[i].group != list[i - 1].group) begins.push_back(i);
  }
  begins.push_back(list.size());
  const std::size_t groups = begins.size() - 1;
  detail::share_blocks((groups + block - 1) / block, options.workers, [&] {
    return [&, reader = detail::document_reader(datasets, type, options.modes)](
               std::uint64_t number) mutable {
      const auto first = static_cast<std::size_t>(number) * block;
      for (std::size_t g = first; g < std::min(first + block, groups); ++g) {
        detail::number_groups(list, begins[g], begins[g + 1], reader);
      }
      check_there();
    };
  });
  std::ranges::sort(list, {}, place);
}

}  // namespace millrace::dataset
