// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/where.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset/detail/open_pool.hpp>
#include <millrace/dataset/detail/run/source_documents.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/error.hpp>

#include "pass_lengths.hpp"

namespace millrace::dataset {

struct run_places::contents {
  contents(const run& of, const sampler& sampled, std::size_t most_open)
      : order(of),
        ranks(sampled),
        lengths(order, ranks),
        documents(
            order.source_count(),
            [&of](std::int64_t source) {
              return std::make_shared<const source_documents>(of.prefix(source));
            },
            most_open) {}

  const run& order;
  sampler ranks;
  detail::pass_lengths lengths;
  open_pool<source_documents> documents;
};

MILLRACE_INLINE run_places::run_places(const run& order, const sampler& ranks,
                                       std::size_t most_open)
    : shared_(std::make_shared<contents>(order, ranks, most_open)) {}

MILLRACE_INLINE std::shared_ptr<const source_documents> run_places::documents(
    std::int64_t source) const {
  return shared_->documents.get(source);
}

MILLRACE_INLINE served_sample run_places::at(const slot_place& slot) const {
  const run& order = shared_->order;
  const sampler& ranks = shared_->ranks;
  served_sample result;
  result.slot = slot;
  result.served = ranks.sample_of(slot);
  result.position = ranks.position_of(result.served);
  result.sample = order.at(result.position);
  result.k =
      shared_->lengths.first(ranks.pass_of(result.served), result.sample.source) + result.sample.k;
  std::vector<piece> pieces;
  result.padding = order.pieces(result.sample, pieces);
  const auto opened = documents(result.sample.source);
  std::vector<std::int64_t> starts;
  order.starts_of(result.sample, pieces, starts);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].tokens == 0) continue;
    const std::int64_t inputs =
        std::clamp<std::int64_t>(order.seq_len() - starts[i], 0, pieces[i].tokens);
    result.pieces.push_back(
        {opened->document_of(pieces[i].sequence), pieces[i], starts[i], inputs});
  }
  if (!order.last_token_as_label()) return result;
  for (std::size_t i = 0; i < result.pieces.size(); ++i) {
    document_piece& each = result.pieces[i];
    const bool is_last =
        i + 1 == result.pieces.size() || result.pieces[i + 1].document != each.document;
    each.inputs = each.tokens.tokens - (is_last ? 1 : 0);
  }
  return result;
}

/// Tokens [first, last) of a document.
struct run_places::document_part {
  std::int64_t document = 0;
  std::int64_t first = 0;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

MILLRACE_INLINE std::vector<appearance> run_places::of(std::int64_t source, std::int64_t document,
                                                       std::int64_t before) const {
  return of(source, document_part{document}, before);
}

MILLRACE_INLINE std::vector<appearance> run_places::of(const std::filesystem::path& prefix,
                                                       std::int64_t document,
                                                       std::int64_t before) const {
  return of(prefix, document_part{document}, before);
}

MILLRACE_INLINE std::vector<appearance> run_places::of_tokens(const std::filesystem::path& prefix,
                                                              std::int64_t document,
                                                              std::int64_t first,
                                                              std::int64_t count,
                                                              std::int64_t before) const {
  return of(prefix, document_part{document, first, first + count}, before);
}

MILLRACE_INLINE std::vector<appearance> run_places::of(std::int64_t source,
                                                       const document_part& part,
                                                       std::int64_t before) const {
  const run& order = shared_->order;
  const auto opened = documents(source);
  const std::int64_t count = opened->document_count();
  if (part.document < 0 || part.document >= count) {
    throw config_error("document " + std::to_string(part.document) + ": " +
                       order.prefix(source).string() + " has " +
                       (count == 0 ? "none" : "documents 0 to " + std::to_string(count - 1)));
  }
  const sequence_range sequences = opened->sequences_of(part.document);
  const bool is_whole = part.first == 0 && part.last == document_part().last;
  const std::int64_t document_begin =
      is_whole || sequences.size() == 0 ? 0 : opened->first_token_of(sequences.first);
  const std::vector<std::int64_t> positions =
      order.positions_with(source, sequences, shared_->ranks.reached(before));
  std::vector<appearance> all;
  std::vector<piece> pieces;
  std::vector<std::int64_t> starts;
  for (const served_place& place : shared_->ranks.all_served(positions, before)) {
    const source_sample sample = order.at(place.position);
    (void)order.pieces(sample, pieces);
    appearance found{place.slot, place.sample, place.position, source,
                     shared_->lengths.first(place.pass, source) + sample.k};
    order.starts_of(sample, pieces, starts);
    std::int64_t in_sample = 0;  // tokens of the whole document
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const piece& p = pieces[i];
      if (p.sequence < sequences.first || sequences.last <= p.sequence || p.tokens == 0) continue;
      in_sample += p.tokens;
      std::int64_t skip = 0;  // tokens of the piece before the part
      std::int64_t tokens = p.tokens;
      if (!is_whole) {
        const std::int64_t at = opened->first_token_of(p.sequence) - document_begin + p.first;
        skip = std::max<std::int64_t>(part.first - at, 0);
        tokens = std::min(part.last - at, p.tokens) - skip;
        if (tokens <= 0) continue;
      }
      if (found.tokens == 0) found.at = starts[i] + skip;
      found.tokens += tokens;
    }
    if (!is_whole && found.tokens == 0) continue;
    found.label_only = order.last_token_as_label() ? !is_whole && part.first == in_sample - 1
                                                   : found.at >= order.seq_len();
    all.push_back(found);
  }
  return all;
}

MILLRACE_INLINE std::vector<appearance> run_places::of(const std::filesystem::path& prefix,
                                                       const document_part& part,
                                                       std::int64_t before) const {
  std::vector<appearance> all;
  bool is_there = false;
  for (std::int64_t s = 0; s < shared_->order.source_count(); ++s) {
    if (shared_->order.prefix(s) != prefix) continue;
    is_there = true;
    const auto found = of(s, part, before);
    all.insert(all.end(), found.begin(), found.end());
  }
  if (!is_there) {
    throw config_error(prefix.string() + " is none of the " +
                       std::to_string(shared_->order.source_count()) + " datasets of the run");
  }
  std::ranges::sort(all, {}, &appearance::served);
  return all;
}

}  // namespace millrace::dataset
