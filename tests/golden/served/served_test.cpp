// SPDX-License-Identifier: Apache-2.0
//
// Serves fixed cases, which were once generated at random. The rows must equal the rows that the
// loader served when the cases were generated. So the test notices if a later version serves other
// rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/formats/detail/crc32c.hpp>

#include "support/draw_served_case.hpp"
#include "support/paths.hpp"
#include "support/served_case.hpp"

namespace millrace::loader {
namespace {

using test::case_batch;
using test::case_row;

/// Computes a CRC-32C of numbers, each converted to a little-endian int64.
class number_crc {
 public:
  template <class Number>
  void add(const std::vector<Number>& numbers) {
    const std::vector<std::int64_t> wide(numbers.begin(), numbers.end());
    crc_ = formats::crc32c(std::as_bytes(std::span(wide)), crc_);
  }
  void add_one(std::int64_t number) { add(std::vector{number}); }
  std::string hex() const {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", crc_);
    return text;
  }

 private:
  std::uint32_t crc_ = 0;
};

using served_ranks = std::vector<std::vector<case_batch>>;  // [rank]

served_ranks serve_all(const test::served_case& c) {
  const test::temp_folder folder(test::quick_folder());
  const auto prefixes = test::write_case_data(c, folder.path());
  const test::case_run run = test::run_of_case(c, prefixes);
  served_ranks ranks;
  for (std::int64_t rank = 0; rank < c.world_size; ++rank) {
    ranks.push_back(test::serve(c, run, prefixes, rank));
  }
  return ranks;
}

/// Returns one entry per rank: the number of micro-batches, the number of rows, and three checksums
/// (of ids, places and fields).
std::string summary_of(const served_ranks& ranks) {
  std::string text;
  for (const auto& batches : ranks) {
    number_crc ids;
    number_crc places;
    number_crc fields;
    std::int64_t rows = 0;
    for (const case_batch& batch : batches) {
      for (const std::int64_t n : {batch.step, batch.micro_batch, batch.micro_batches,
                                   std::int64_t{std::ssize(batch.rows)}}) {
        places.add_one(n);
      }
      for (const case_row& row : batch.rows) {
        ++rows;
        ids.add(row.text);
        for (const std::int64_t n : {row.sample, row.position, row.source, row.real}) {
          places.add_one(n);
        }
        places.add(row.boundaries);
        places.add(row.document_ends);
        fields.add(row.fields);
      }
    }
    text += (text.empty() ? "" : " ") + std::to_string(batches.size()) + ':' +
            std::to_string(rows) + ':' + ids.hex() + ':' + places.hex() + ':' + fields.hex();
  }
  return text;
}

/// Returns one line per row: rank, step, micro-batch, row, sample, position, source, and then the
/// ids.
std::vector<std::string> rows_of(const served_ranks& ranks) {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const case_batch& batch : ranks[rank]) {
      for (const case_row& row : batch.rows) {
        std::string line = std::to_string(rank);
        for (const std::int64_t n :
             {row.step, row.micro_batch, row.row, row.sample, row.position, row.source}) {
          line += ' ' + std::to_string(n);
        }
        line += " :";
        for (const std::int64_t id : row.text) line += ' ' + std::to_string(id);
        lines.push_back(line);
      }
    }
  }
  return lines;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::istringstream in(test::read_text(path));
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

constexpr const char* separator = " => ";

/// If MILLRACE_DRAW_SERVED=FOLDER is set, generates cases at random, and writes cases.txt and
/// rows.txt.
void draw_files(const std::filesystem::path& folder) {
  std::string cases =
      "# Cases that were drawn once, and what the loader served. tests/golden/README.md says how "
      "to "
      "read a line.\n";
  std::string rows = "# All rows of five cases. tests/golden/README.md says how to read a line.\n";
  for (const auto order : {test::case_order::stored, test::case_order::megatron,
                           test::case_order::instant, test::case_order::packed}) {
    const int most = order == test::case_order::stored ? 10 : 18;
    const std::size_t most_shown = order == test::case_order::megatron ? 2 : 1;
    std::size_t shown = 0;
    for (int i = 0; i < most; ++i) {
      test::split_mix random(static_cast<std::uint64_t>(1000 * static_cast<int>(order) + i));
      const auto drawn = test::draw_case(random, order);
      const auto ranks = serve_all(drawn->config);
      const std::string text = test::case_text(drawn->config);
      cases += text + separator + summary_of(ranks) + '\n';
      const auto lines = rows_of(ranks);
      const bool has_one_dataset = drawn->config.data.size() == 1;
      const bool is_wanted = order == test::case_order::stored || has_one_dataset == (shown == 1);
      if (shown < most_shown && is_wanted && lines.size() > 12 && lines.size() < 60) {
        ++shown;
        rows += text + '\n';
        for (const std::string& line : lines) rows += line + '\n';
      }
    }
  }
  test::write_text(folder / "cases.txt", cases);
  test::write_text(folder / "rows.txt", rows);
}

TEST(ServedGolden, CasesServeWhatTheyServed) {
  if (const char* folder = std::getenv("MILLRACE_DRAW_SERVED")) {
    draw_files(folder);
    GTEST_SKIP() << "wrote " << folder << "/cases.txt and rows.txt";
  }
  std::set<std::string> seen;
  const auto lines = lines_of(test::golden("served/cases.txt"));
  ASSERT_GE(lines.size(), 60U);
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    const auto end = line.find(separator);
    ASSERT_NE(end, std::string::npos);
    const std::string config = line.substr(0, end);
    const test::served_case c = test::parse_case(config);
    EXPECT_EQ(test::case_text(c), config) << "the text does not say all of the case";
    EXPECT_EQ(summary_of(serve_all(c)), line.substr(end + std::string(separator).size()));
    seen.insert(test::case_orders[static_cast<std::size_t>(c.order)]);
    seen.insert(test::case_samplers[static_cast<std::size_t>(c.sampler)]);
    if (!c.drop_last) seen.insert("no drop_last");
    if (c.rampup) seen.insert("ramp-up");
    if (c.blend.size() > 1) seen.insert("schedule");
    for (const auto& e : c.edits) {
      seen.insert(test::case_kinds[static_cast<std::size_t>(e.change.kind)]);
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"stored", "megatron", "instant", "packed", "single",
                                         "cyclic", "full_validation", "no drop_last", "ramp-up",
                                         "schedule", "skip", "replay", "block"}));
}

TEST(ServedGolden, RowsAreTheOnesThatWereServed) {
  std::vector<std::string> expected = lines_of(test::golden("served/rows.txt"));
  std::vector<std::string> found;
  int cases = 0;
  for (const std::string& line : expected) {
    if (!line.starts_with("order=")) continue;
    ++cases;
    found.push_back(line);
    const auto rows = rows_of(serve_all(test::parse_case(line)));
    found.insert(found.end(), rows.begin(), rows.end());
  }
  EXPECT_EQ(cases, 5);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], expected[i]) << "line " << i;
}

}  // namespace
}  // namespace millrace::loader
