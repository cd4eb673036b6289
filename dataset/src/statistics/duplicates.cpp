// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/dataset/statistics.hpp>

#include "../content_hash.hpp"
#include "documents.hpp"

namespace millrace::dataset {

namespace detail {

/// The type in which the ids of all datasets are compared.
inline formats::dtype common_id_type(std::span<const indexed_dataset> data) {
  formats::dtype type = data.front().type();
  for (const indexed_dataset& each : data) type = dataset::common_id_type(type, each.type());
  return type;
}

/// The hashes of all documents that are not empty, sorted.
inline std::vector<hashed_document> hash_documents(const document_list& documents,
                                                   std::span<const indexed_dataset> data,
                                                   const statistics_options& options) {
  struct worker {
    const document_list* documents;
    const std::vector<document_block>* blocks;
    const std::vector<std::int64_t>* first_numbers;
    std::vector<hashed_document>* all;
    id_reader ids;
    std::vector<hashed_document> mine = {};

    std::int64_t operator()(std::int64_t block) {
      const document_block& part = (*blocks)[static_cast<std::size_t>(block)];
      const std::int64_t first_number = (*first_numbers)[static_cast<std::size_t>(part.dataset)];
      std::int64_t tokens = 0;
      for (std::int64_t d = part.first; d < part.last; ++d) {
        const token_view document = documents->tokens({part.dataset, d});
        if (document.empty()) continue;
        tokens += document.size();
        content_hash hash;
        ids.add_to(hash, document);
        mine.push_back({hash.value(), first_number + d});
      }
      documents->check_there(part.dataset);
      return tokens;
    }
    void finish() { all->insert(all->end(), mine.begin(), mine.end()); }
  };
  const auto blocks = document_blocks(data, options.block_tokens);
  std::vector<std::int64_t> first_numbers;
  std::int64_t count = 0;
  for (const indexed_dataset& each : data) {
    first_numbers.push_back(std::exchange(count, count + each.document_count()));
  }
  std::vector<hashed_document> all;
  std::int64_t done = 0;
  for_each_block(
      std::ssize(blocks), options.workers,
      [&] {
        return worker{&documents, &blocks, &first_numbers, &all, id_reader(common_id_type(data))};
      },
      [&](std::int64_t tokens) {
        done += tokens;
        if (options.progress) options.progress(done, documents.token_count());
      });
  std::ranges::sort(all);
  return all;
}

/// True if a group repeats more tokens than another, or as many and begins earlier.
inline bool repeats_more(const duplicate_group& a, const duplicate_group& b) {
  const std::int64_t of_a = a.tokens * (a.copies - 1);
  const std::int64_t of_b = b.tokens * (b.copies - 1);
  return of_a != of_b ? of_a > of_b : a.places.front() < b.places.front();
}

}  // namespace detail

MILLRACE_INLINE duplicate_documents find_duplicates(std::span<const indexed_dataset> data,
                                                    const duplicate_limits& limits,
                                                    const statistics_options& options) {
  duplicate_documents found;
  if (data.empty()) return found;
  const detail::document_list documents(data);
  const auto hashes = detail::hash_documents(documents, data, options);
  detail::id_reader ids(detail::common_id_type(data));
  const auto keep = [&](duplicate_group group) {
    ++found.group_count;
    found.documents += group.copies - 1;
    found.tokens += group.tokens * (group.copies - 1);
    found.groups.push_back(std::move(group));
    if (found.groups.size() < 2 * limits.groups + 64) return;
    std::ranges::nth_element(found.groups,
                             found.groups.begin() + static_cast<std::ptrdiff_t>(limits.groups),
                             detail::repeats_more);
    found.groups.resize(limits.groups);
  };
  for (std::size_t first = 0; first < hashes.size();) {
    std::size_t last = first + 1;
    while (last < hashes.size() && hashes[last].hash == hashes[first].hash) ++last;
    // Documents with the same hash have the same ids, with very few exceptions: so one list of
    // groups, each with its first document, is short.
    std::vector<std::pair<token_view, duplicate_group>> groups;
    for (std::size_t i = first; i < last && last - first > 1; ++i) {
      const document_place place = documents.place(hashes[i].number);
      const token_view tokens = documents.tokens(place);
      auto same = std::ranges::find_if(
          groups, [&](const auto& group) { return ids.equal(group.first, tokens); });
      if (same == groups.end())
        same = groups.insert(same, {tokens, {.tokens = tokens.size(), .copies = 0, .places = {}}});
      ++same->second.copies;
      if (same->second.places.size() < std::max<std::size_t>(limits.places, 1))
        same->second.places.push_back(place);
      documents.check_there(place.dataset);
    }
    for (auto& [tokens, group] : groups) {
      if (group.copies > 1) keep(std::move(group));
    }
    first = last;
  }
  std::ranges::sort(found.groups, detail::repeats_more);
  if (found.groups.size() > limits.groups) found.groups.resize(limits.groups);
  return found;
}

}  // namespace millrace::dataset
