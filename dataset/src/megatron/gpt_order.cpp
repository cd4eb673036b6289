// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_order.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE std::int64_t gpt_order::shuffled(std::int64_t k) const {
  assert(0 <= k && k < size());
  const std::int64_t j = index_.shuffle[k];
  if (j < 0 || j >= plan_.samples) {
    throw format_error(
        index_.shuffle_path,
        index_.shuffle_offset + index_.shuffle.number_bytes() * static_cast<std::uint64_t>(k),
        "sample " + std::to_string(k) + " is number " + std::to_string(j) +
            " before the shuffle, expected 0 to " + std::to_string(plan_.samples - 1));
  }
  return j;
}

MILLRACE_INLINE std::int64_t gpt_order::sequence_at(std::int64_t entry) const {
  const std::int64_t sequence = index_.document[entry];
  if (sequence < plan_.sequences.first || sequence >= plan_.sequences.last) {
    throw format_error(
        index_.document_path,
        index_.document_offset + index_.document.number_bytes() * static_cast<std::uint64_t>(entry),
        "entry " + std::to_string(entry) + " is sequence " + std::to_string(sequence) +
            ", expected " + std::to_string(plan_.sequences.first) + " to " +
            std::to_string(plan_.sequences.last - 1));
  }
  return sequence;
}

MILLRACE_INLINE std::int64_t gpt_order::read_sample(std::int64_t j,
                                                    std::vector<piece>& pieces) const {
  assert(0 <= j && j < size());
  pieces.clear();
  const row begin = row_at(j);
  const row end = row_at(j + 1);
  if (begin.entry < 0 || begin.offset < 0 || end.entry < begin.entry ||
      end.entry >= plan_.document_entries()) {
    throw_bad_sample(j);
  }
  std::int64_t missing = sample_tokens();
  for (std::int64_t entry = begin.entry; entry <= end.entry; ++entry) {
    const std::int64_t sequence = sequence_at(entry);
    const std::int64_t length = lengths_[static_cast<std::size_t>(sequence)];
    const std::int64_t first = entry == begin.entry ? begin.offset : 0;
    if (entry == end.entry && end.offset > length - plan_.extra_token) throw_bad_sample(j);
    const std::int64_t last = entry == end.entry ? end.offset + plan_.extra_token : length;
    if (first > last || last - first > missing) throw_bad_sample(j);
    pieces.push_back({sequence, first, last - first});
    missing -= last - first;
  }
  const bool may_be_partial = plan_.last_sample_is_partial && j == plan_.samples - 1;
  if (missing != 0 && !may_be_partial) throw_bad_sample(j);
  return missing;
}

/// Returns the token at which an entry begins, in the stream of all entries. Counts from the
/// nearest preceding row of the sample index.
MILLRACE_INLINE std::int64_t gpt_order::first_token_of(std::int64_t entry) const {
  // Row j is at token j * L, except for the last row if the last sample is partial. A row may name
  // its place as the end of an entry or as the start of the next entry.
  std::int64_t low = 0;
  std::int64_t high = plan_.samples + (plan_.last_sample_is_partial ? 0 : 1);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (row_at(middle).entry <= entry ? low : high) = middle;
  }
  const row nearest = row_at(low);
  if (nearest.entry < 0 || nearest.entry > entry || nearest.offset < 0 ||
      nearest.offset > std::min(length_at(nearest.entry), low * plan_.sequence_length)) {
    throw_bad_row(low);
  }
  std::int64_t token = low * plan_.sequence_length - nearest.offset;
  for (std::int64_t i = nearest.entry; i < entry; ++i) token += length_at(i);
  return token;
}

MILLRACE_INLINE std::vector<std::int64_t> gpt_order::samples_with(std::int64_t sequence,
                                                                  std::int64_t token) const {
  return checked([&] { return read_samples_with(sequence, token); });
}

MILLRACE_INLINE std::vector<std::int64_t> gpt_order::samples_with(sequence_range sequences) const {
  return checked([&] { return read_samples_with(sequences); });
}

MILLRACE_INLINE std::vector<piece> gpt_order::behind_last_sample() const {
  return checked([&] { return read_behind_last_sample(); });
}

MILLRACE_INLINE std::vector<std::int64_t> gpt_order::read_samples_with(std::int64_t sequence,
                                                                       std::int64_t token) const {
  std::vector<std::int64_t> unshuffled;
  for (std::int64_t entry = 0; entry < plan_.document_entries(); ++entry) {
    if (index_.document[entry] != sequence) continue;
    const std::int64_t at = first_token_of(entry) + token;
    index_.check_there();  // stop early, because lookups are slow once a page is lost
    const std::int64_t j = at / plan_.sequence_length;
    if (j < plan_.samples) unshuffled.push_back(j);
    // The first token of a sample is also the last label of the preceding sample.
    const bool shared = plan_.extra_token == 1 && j > 0 && at % plan_.sequence_length == 0;
    if (shared && j - 1 < plan_.samples) unshuffled.push_back(j - 1);
  }
  return in_shuffled_order(std::move(unshuffled));
}

MILLRACE_INLINE std::vector<std::int64_t> gpt_order::read_samples_with(
    sequence_range sequences) const {
  std::vector<std::int64_t> unshuffled;
  for (std::int64_t entry = 0; entry < plan_.document_entries(); ++entry) {
    const std::int64_t sequence = index_.document[entry];
    if (sequence < sequences.first || sequence >= sequences.last) continue;
    const std::int64_t length = length_at(entry);
    if (length == 0) continue;
    const std::int64_t first = first_token_of(entry);
    index_.check_there();
    const std::int64_t last = first + length - 1;
    std::int64_t j = first / plan_.sequence_length;
    // The first token of a sample is also the last label of the preceding sample.
    if (plan_.extra_token == 1 && j > 0 && first % plan_.sequence_length == 0) --j;
    for (; j < plan_.samples && j <= last / plan_.sequence_length; ++j) unshuffled.push_back(j);
  }
  return in_shuffled_order(std::move(unshuffled));
}

MILLRACE_INLINE std::vector<std::int64_t> gpt_order::in_shuffled_order(
    std::vector<std::int64_t> unshuffled) const {
  std::ranges::sort(unshuffled);
  std::vector<std::int64_t> samples;
  for (std::int64_t k = 0; k < plan_.samples && !unshuffled.empty(); ++k) {
    if (std::ranges::binary_search(unshuffled, shuffled(k))) samples.push_back(k);
  }
  return samples;
}

MILLRACE_INLINE std::vector<piece> gpt_order::read_behind_last_sample() const {
  std::vector<piece> pieces;
  if (plan_.last_sample_is_partial || plan_.tokens() == 0) return pieces;
  const row begin = row_at(plan_.samples);
  if (begin.entry < 0 || begin.entry >= plan_.document_entries() || begin.offset < 0 ||
      begin.offset > length_at(begin.entry)) {
    throw_bad_row(plan_.samples);
  }
  for (std::int64_t entry = begin.entry; entry < plan_.document_entries(); ++entry) {
    const std::int64_t first = entry == begin.entry ? begin.offset : 0;
    const std::int64_t tokens = length_at(entry) - first;
    if (tokens > 0) pieces.push_back({sequence_at(entry), first, tokens});
  }
  return pieces;
}

MILLRACE_INLINE std::string gpt_order::text_of(row r) {
  std::string text = "(";
  text += std::to_string(r.entry) + ", ";
  text += std::to_string(r.offset) + ")";
  return text;
}

MILLRACE_INLINE void gpt_order::throw_at_row(std::int64_t j, const std::string& what) const {
  throw format_error(
      index_.sample_path,
      index_.sample_offset + 2 * index_.sample.number_bytes() * static_cast<std::uint64_t>(j),
      what + ": the index was made for another dataset or other options, or it is damaged");
}

MILLRACE_INLINE void gpt_order::throw_bad_row(std::int64_t j) const {
  throw_at_row(j, "row " + std::to_string(j) + " is " + text_of(row_at(j)) +
                      ", which is not the place of token " +
                      std::to_string(j * plan_.sequence_length) + " of the shuffled sequences");
}

MILLRACE_INLINE void gpt_order::throw_bad_sample(std::int64_t j) const {
  throw_at_row(j, "the sample from " + text_of(row_at(j)) + " to " + text_of(row_at(j + 1)) +
                      " does not have the " + std::to_string(sample_tokens()) +
                      " tokens of a sample");
}

}  // namespace millrace::dataset
