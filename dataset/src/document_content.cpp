// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/document_content.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

#include "share_blocks.hpp"

namespace millrace::dataset {

namespace detail {

inline bool is_float(formats::dtype type) noexcept {
  return type == formats::dtype::float32 || type == formats::dtype::float64;
}

/// A hash of bytes that are added in any number of parts. Each part but the last has a multiple of
/// 32 bytes. Two multiplications per 32 bytes, so that a core hashes about as fast as it reads.
class content_hash {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    size_ += bytes.size();
    std::uint64_t words[4];
    for (; bytes.size() >= sizeof(words); bytes = bytes.subspan(sizeof(words))) {
      std::memcpy(words, bytes.data(), sizeof(words));
      mix(words);
    }
    if (bytes.empty()) return;
    std::ranges::fill(words, 0);
    std::memcpy(words, bytes.data(), bytes.size());
    mix(words);
  }

  /// Adds a number, after which nothing but numbers may be added.
  void add_number(std::uint64_t number) noexcept {
    a_ = fold(a_ ^ number, 0x9E3779B97F4A7C15 ^ b_);
  }

  std::uint64_t value() const noexcept {
    return fold(fold(a_ ^ size_, b_ ^ 0xD6E8FEB86659FD93), 0xA0761D6478BD642F);
  }

 private:
  static std::uint64_t fold(std::uint64_t x, std::uint64_t y) noexcept {
    __extension__ using wide = unsigned __int128;
    const wide product = static_cast<wide>(x) * y;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  void mix(const std::uint64_t (&words)[4]) noexcept {
    a_ = fold(a_ ^ words[0], words[1] ^ 0xE7037ED1A0B428DB);
    b_ = fold(b_ ^ words[2], words[3] ^ 0x8EBC6AF09C88C6E3);
  }

  std::uint64_t a_ = 0x589965CC75374CC3;
  std::uint64_t b_ = 0x1D8E4E27C47D124F;
  std::uint64_t size_ = 0;
};

/// Hashes and compares documents of several datasets. Used by one thread.
class document_reader {
 public:
  document_reader(std::span<const indexed_dataset* const> datasets, formats::dtype type, bool modes)
      : datasets_(datasets), type_(type), modes_(modes) {}

  std::uint64_t hash(const listed_document& which) {
    const indexed_dataset& data = of(which);
    const token_view ids = data.document_tokens(which.document);
    content_hash hash;
    for (std::int64_t at = 0; at < ids.size(); at += most_ids_as) {
      hash.add(ids_as(type_, ids.subview(at, std::min(most_ids_as, ids.size() - at)), a_));
    }
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
    const token_view ids_a = a.document_tokens(x.document);
    const token_view ids_b = b.document_tokens(y.document);
    for (std::int64_t at = 0; at < ids_a.size(); at += most_ids_as) {
      const std::int64_t count = std::min(most_ids_as, ids_a.size() - at);
      const auto part_a = ids_as(type_, ids_a.subview(at, count), a_);
      const auto part_b = ids_as(type_, ids_b.subview(at, count), b_);
      if (std::memcmp(part_a.data(), part_b.data(), part_a.size()) != 0) return false;
    }
    return true;
  }

 private:
  const indexed_dataset& of(const listed_document& which) const {
    return *datasets_[static_cast<std::size_t>(which.dataset)];
  }
  bool has_modes(const indexed_dataset& data) const noexcept {
    return modes_ && data.is_multimodal();
  }

  std::span<const indexed_dataset* const> datasets_;
  formats::dtype type_;
  bool modes_;
  std::vector<std::byte> a_;
  std::vector<std::byte> b_;
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
