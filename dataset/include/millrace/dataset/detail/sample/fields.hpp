// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/dataset/detail/sample/field_options.hpp>
#include <millrace/dataset/detail/sample/gather.hpp>

namespace millrace::dataset {

/// Output buffers for the fields of a sample: [seq_len] each, or empty if the field is not needed.
/// They must not overlap each other or the text.
///
/// @tparam Id  std::int64_t as in Megatron, or std::int32_t
template <class Id = std::int64_t>
struct sample_fields {
  std::span<Id> tokens = {};        ///< the inputs; 0 for padding
  std::span<Id> labels = {};        ///< the token after each input; 0 for padding
  std::span<float> loss_mask = {};  ///< 1 if the loss counts, otherwise 0
  std::span<Id> position_ids = {};
};

/// Fills in the fields of one sample from its text, in one pass. Does not allocate; thread-safe.
///
/// The fields equal those of Megatron's GPTDataset, except for a bug in Megatron before 0.16. If
/// `reset_position_ids`, `reset_attention_mask` and `eod_mask_loss` are all off, Megatron before
/// 0.16 computes the loss mask only once, from the first sample and its padding. It reuses this
/// mask for all later samples.
///
/// @param text     [seq_len + extra_token], as filled by `gather`
/// @param real     number of tokens from the dataset, as returned by `gather`; the rest is padding
/// @param seq_len  length of each requested field
/// @pre text.size() == seq_len + extra_token, 0 <= real <= text.size()
template <class Token, class Id>
void fill_fields(std::span<const Token> text, std::int64_t real, std::int64_t seq_len,
                 const field_options& options, const sample_fields<Id>& out);

/// Returns the parts of the fields in `out` for tokens `first` to `first + count - 1`. Empty fields
/// remain empty.
template <class Id>
sample_fields<Id> part_of(const sample_fields<Id>& out, std::int64_t first, std::int64_t count);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// An id to compare tokens with. An id that Token cannot represent equals no token.
template <class Token>
struct comparable_id {
  explicit comparable_id(std::int64_t id) noexcept
      : value(static_cast<Token>(id)), exists(static_cast<std::int64_t>(value) == id) {}
  bool operator==(Token token) const noexcept { return (token == value) & exists; }
  Token value;
  bool exists;
};

/// The reference implementation: it processes one token at a time. The loops below do the same for
/// many tokens at a time.
template <class Id>
class field_writer {
 public:
  field_writer(const field_options& options, const sample_fields<Id>& out) noexcept
      : options_(options), out_(out) {}

  void put(std::int64_t i, std::int64_t token, std::int64_t next) noexcept {
    const auto at = static_cast<std::size_t>(i);
    const bool at_eod = token == options_.eod;
    if (!out_.tokens.empty()) out_.tokens[at] = static_cast<Id>(token == options_.pad ? 0 : token);
    if (!out_.labels.empty()) out_.labels[at] = static_cast<Id>(next == options_.pad ? 0 : next);
    if (!out_.loss_mask.empty()) {
      const bool off = next == options_.pad || (options_.eod_mask_loss && at_eod);
      out_.loss_mask[at] = off ? 0.0F : 1.0F;
    }
    if (!out_.position_ids.empty()) out_.position_ids[at] = static_cast<Id>(i - start_);
    if (options_.reset_position_ids && at_eod) start_ = i + 1;
  }

  std::int64_t start() const noexcept { return start_; }
  void restart(std::int64_t i) noexcept { start_ = i; }

 private:
  const field_options& options_;
  const sample_fields<Id>& out_;
  std::int64_t start_ = 0;  // index of the token that has position 0
};

// Each loop below has a separate version without comparisons with the pad id, because usually no
// token can equal that id.
template <class Token, class Id>
void fill_ids(const Token* __restrict text, comparable_id<Token> pad, Id* __restrict out,
              std::size_t count) noexcept {
  if (!pad.exists) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Id>(text[i]);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<Id>(text[i]);
    out[i] = text[i] == pad.value ? Id{} : id;
  }
}

template <class Token>
void fill_loss(const Token* __restrict text, comparable_id<Token> pad, comparable_id<Token> eod,
               float* __restrict out, std::size_t count) noexcept {
  if (!pad.exists && !eod.exists) {
    std::fill(out, out + count, 1.0F);
  } else if (!pad.exists) {
    for (std::size_t i = 0; i < count; ++i) out[i] = text[i] == eod.value ? 0.0F : 1.0F;
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      const bool off = (text[i + 1] == pad.value) | ((text[i] == eod.value) & eod.exists);
      out[i] = off ? 0.0F : 1.0F;
    }
  }
}

template <class Token>
bool any_of_them(const Token* text, comparable_id<Token> id, std::size_t count) noexcept {
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) found |= id == text[i];
  return found;
}

template <class Id>
void fill_count(Id first, Id* __restrict out, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Id>(first + static_cast<Id>(i));
}

/// Fills in the positions of tokens [first, last), which must not include padding. Token `start`
/// has position 0. Returns the `start` of the tokens that follow. Processes tokens one by one only
/// in blocks of 32 tokens that contain an eod.
template <class Token, class Id>
std::int64_t fill_positions(const Token* text, std::int64_t first, std::int64_t last,
                            std::int64_t start, comparable_id<Token> eod, Id* out) noexcept {
  const std::int64_t few = eod.exists ? 32 : last - first;
  for (std::int64_t end = first; first < last; first = end) {
    end = std::min(last, first + few);
    const auto count = static_cast<std::size_t>(end - first);
    if (!eod.exists || !any_of_them(text + first, eod, count)) {
      fill_count(static_cast<Id>(first - start), out + first, count);
      continue;
    }
    for (std::int64_t i = first; i < end; ++i) {
      out[i] = static_cast<Id>(i - start);
      start = eod == text[i] ? i + 1 : start;
    }
  }
  return start;
}

}  // namespace detail

template <class Token, class Id>
void fill_fields(std::span<const Token> text, std::int64_t real, std::int64_t seq_len,
                 const field_options& options, const sample_fields<Id>& out) {
  assert(static_cast<std::int64_t>(text.size()) == seq_len + (options.extra_token ? 1 : 0));
  assert(0 <= real && real <= static_cast<std::int64_t>(text.size()));
  const detail::comparable_id<Token> pad(options.pad);
  const detail::comparable_id<Token> loss_eod(options.eod_mask_loss ? options.eod : no_token);
  const detail::comparable_id<Token> position_eod(options.reset_position_ids ? options.eod
                                                                             : no_token);
  detail::field_writer<Id> slow(options, out);
  // A block stays in the L1 cache while all fields are made from it. Every token before `whole` is
  // from the dataset, and so is its label.
  constexpr std::int64_t block = 512;
  const std::int64_t whole = std::clamp<std::int64_t>(real - 1, 0, seq_len);
  for (std::int64_t first = 0; first < whole; first += block) {
    const std::int64_t last = std::min(whole, first + block);
    const auto count = static_cast<std::size_t>(last - first);
    const Token* const from = text.data() + first;
    if (!out.tokens.empty()) detail::fill_ids(from, pad, out.tokens.data() + first, count);
    if (!out.labels.empty()) detail::fill_ids(from + 1, pad, out.labels.data() + first, count);
    if (!out.loss_mask.empty()) {
      detail::fill_loss(from, pad, loss_eod, out.loss_mask.data() + first, count);
    }
    if (!out.position_ids.empty()) {
      slow.restart(detail::fill_positions(text.data(), first, last, slow.start(), position_eod,
                                          out.position_ids.data()));
    }
  }
  const auto at = [&](std::int64_t i) {
    return i < real ? static_cast<std::int64_t>(text[static_cast<std::size_t>(i)]) : options.pad;
  };
  for (std::int64_t i = whole; i < seq_len; ++i) slow.put(i, at(i), at(i + 1));
}

template <class Id>
sample_fields<Id> part_of(const sample_fields<Id>& out, std::int64_t first, std::int64_t count) {
  const auto part = [&](auto field) {
    return field.empty()
               ? field
               : field.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  };
  return {part(out.tokens), part(out.labels), part(out.loss_mask), part(out.position_ids)};
}

}  // namespace millrace::dataset
