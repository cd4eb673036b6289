// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/packed_run.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/feistel.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/instant/instant_order.hpp>
#include <millrace/dataset/instant/order_keys.hpp>
#include <millrace/dataset/instant/schedule.hpp>
#include <millrace/dataset/packing/packed_sample.hpp>
#include <millrace/dataset/run/instant_run.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE packed_run::open_source::open_source(const std::filesystem::path& prefix,
                                                     const packing_options& options, bool keep)
    : search(index_columns(prefix, index_access::map_with_read_ahead)),
      rows(columns(), options,
           keep ? row_table_path(columns(), options) : std::filesystem::path()) {}

MILLRACE_INLINE packed_run::packed_run(const std::vector<instant_source>& sources,
                                       const instant_options& options,
                                       const packed_options& packing) {
  shared_->sources = sources;
  shared_->options = options;
  shared_->packing = packing;
  shared_->pool.emplace(
      std::ssize(sources),
      [of = shared_.get()](std::int64_t source) { return open_again(*of, source); },
      options.most_open);
  const std::vector<std::string> names = detail::checked_names(sources);
  std::vector<source_limit> limits;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const auto number = static_cast<std::int64_t>(s);
    const source_pointer opened = open_anew(*shared_, number);
    const source_info info{names[s],
                           opened->rows.row_count(),
                           opened->columns().token_count(),
                           opened->columns().bin_size_bytes(),
                           opened->columns().type(),
                           order_hash(shuffle_of::bins, options.seed, name_hash(names[s]))};
    if (info.rows < 1) {
      throw config_error("source " + names[s] +
                         " has no documents to pack, expected a token at least; leave it out");
    }
    shared_->infos.push_back(info);
    limits.push_back(detail::limit_of(sources[s], names[s], info.rows));
    shared_->pool->put(number, opened);
  }
  shared_->blend.emplace(options.segments, std::move(limits),
                         detail::checked_steps(options.first_position_of), options.train_samples);
}

MILLRACE_INLINE packed_run::source_pointer packed_run::open_anew(const contents& of,
                                                                 std::int64_t s) {
  return std::make_shared<const open_source>(
      of.sources[static_cast<std::size_t>(s)].prefix,
      packing_options{.seq_len = of.options.seq_len,
                      .pad_documents_to = of.packing.pad_documents_to,
                      .threads = of.packing.threads},
      of.packing.keep_tables);
}

MILLRACE_INLINE packed_run::source_pointer packed_run::open_again(const contents& of,
                                                                  std::int64_t s) {
  source_pointer opened = open_anew(of, s);
  const index_columns& found = opened->columns();
  const source_info& expected = of.infos[static_cast<std::size_t>(s)];
  if (opened->rows.row_count() != expected.rows || found.bin_size_bytes() != expected.bin_bytes ||
      found.type() != expected.type) {
    throw format_error(found.idx_path(), 0,
                       "the dataset has " + std::to_string(opened->rows.row_count()) +
                           " packed rows of " + std::to_string(found.token_count()) +
                           " tokens, but had " + std::to_string(expected.rows) + " of " +
                           std::to_string(expected.tokens) +
                           " when the run was set up: it is another one, or was replaced");
  }
  return opened;
}

MILLRACE_INLINE std::vector<std::int64_t> packed_run::positions_with(std::int64_t source,
                                                                     sequence_range sequences,
                                                                     std::int64_t before) const {
  const source_pointer opened = open(source);
  std::vector<std::int64_t> rows;
  for (std::int64_t sequence = sequences.first; sequence < sequences.last;) {
    const std::int64_t document = opened->search.document_of(sequence);
    const document_range range = opened->columns().document(document);
    // Only the rows that hold the sequence itself: a long document has more than one.
    for (const std::int64_t row : opened->rows.rows_of(document)) rows.push_back(row);
    sequence = range.last;
  }
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::vector<packed_part> parts;
  std::vector<piece> pieces;
  const auto holds = [&](std::int64_t row) {
    opened->rows.row(row, parts);
    pieces.clear();
    for (const packed_part& part : parts) append_pieces(opened->columns(), part, pieces);
    return std::ranges::any_of(pieces, [&](const piece& p) {
      return sequences.first <= p.sequence && p.sequence < sequences.last && p.tokens > 0;
    });
  };
  std::erase_if(rows, [&](std::int64_t row) { return !holds(row); });

  const source_info& of = info(source);
  const std::int64_t taken_before = taken(source, before);
  std::vector<std::int64_t> positions;
  for (std::int64_t e = 0; e * of.rows < taken_before; ++e) {
    const feistel order = shuffle(of, e);
    for (const std::int64_t row : rows) {
      const std::int64_t k = e * of.rows + order.inverse(row);
      if (k >= taken_before) continue;
      if (const auto at = shared_->blend->position_of({source, k})) positions.push_back(*at);
    }
  }
  std::ranges::sort(positions);
  return positions;
}

MILLRACE_INLINE run_state packed_run::description() const {
  run_state state = detail::describe(shared_->sources, shared_->options);
  state.extra_token = false;
  state.packing = "best_fit";
  state.pad_documents_to = pad_documents_to();
  return state;
}

}  // namespace millrace::dataset
