// SPDX-License-Identifier: Apache-2.0
//
// A bad block ends a run. The same run then resumes, but without the documents in that block.
#include <millrace/loader/batch_loader.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/loader/detail/verify/quarantine.hpp>
#include <millrace/loader/loader_report.hpp>

#include "support/summed_dataset.hpp"

namespace millrace::loader {
namespace {

constexpr std::int64_t window = 512;
constexpr std::int64_t document = 1000;
constexpr std::int64_t block = (1 << 20) / 2;  // in tokens of two bytes
constexpr std::int64_t bad = 3 * block;        // index of the first token of the bad block

/// A run of one epoch over three and a half blocks. The last block has a flipped bit.
class QuarantinedRun : public testing::Test {
 protected:
  QuarantinedRun() {
    const auto& tokens = stored_.tokens();
    for (std::int64_t w = 0; w < windows(); ++w) {
      const auto first = tokens.begin() + w * window;
      number_of_[std::vector<std::int64_t>(first, first + window)] = w;
    }
    test::flip_bit(stored_.bin(), 2 * bad + 77'777);
    options_.verify.scrub_bytes_per_second = 0;
    options_.verify.in_memory = [](int, std::uint64_t, std::uint64_t) { return true; };
  }

  std::int64_t windows() const {
    return (static_cast<std::int64_t>(stored_.tokens().size()) - 1) / window;
  }

  dataset::instant_run run() const {
    dataset::instant_options order;
    order.seed = 4;  // with this seed, some samples come before the bad ones
    order.seq_len = window;
    order.segments.push_back({0, {{0, 1.0}}});
    order.first_position_of = [](std::int64_t step) { return step * 2; };
    order.train_samples = windows();
    return {{{stored_.prefix(), "data", {}, {}}}, order};
  }

  // Adds the windows of a batch to `to`. Identifies each window by the text that it had before the
  // bit was flipped.
  void note(const batch& served, std::set<std::int64_t>& to) const {
    for (std::size_t row = 0; row < 2; ++row) {
      const auto ids = served.tokens().subspan(row * window, window);
      const auto found = number_of_.find({ids.begin(), ids.end()});
      ASSERT_NE(found, number_of_.end()) << "a text that was never stored";
      EXPECT_TRUE(to.insert(found->second).second) << "served twice";
    }
  }

  // Returns whether window w, including its last label, contains any token from `first` up to, but
  // not including, `last`.
  static bool meets(std::int64_t w, std::int64_t first, std::int64_t last) {
    return w * window < last && first < w * window + window + 1;
  }

  test::summed_dataset<std::uint16_t> stored_{7 * block / 2, 30'000,
                                              static_cast<std::size_t>(document)};
  std::map<std::vector<std::int64_t>, std::int64_t> number_of_;
  loader_options options_{.batch_size = 2};
};

TEST_F(QuarantinedRun, GoesOnWithoutTheDocumentsOfTheBadBlock) {
  std::set<std::int64_t> before;
  std::string state;
  quarantine found;
  {
    batch_loader loader(run(), options_);
    try {
      while (const auto batch = loader.next()) note(*batch, before);
      FAIL() << "a wrong bit was served";
    } catch (const format_error&) {
      state = dataset::write_state(loader.state());
      found = quarantine_of(loader.observe().verification->findings, loader.consumed_samples());
    }
  }
  EXPECT_GT(before.size(), 0U) << "else nothing is gone on with";
  ASSERT_EQ(found.edits.size(), 1U);
  const test::temp_folder folder;
  write_quarantine(folder / "quarantine.json", found.edits);

  // Without edits, the resumed run must fail at the same place again.
  batch_loader unedited(run(), options_);
  unedited.load_state(state);
  EXPECT_THROW((void)unedited.next(), format_error);

  options_.edits = read_quarantine(folder / "quarantine.json");
  batch_loader loader(run(), options_);
  loader.load_state(state);
  std::set<std::int64_t> after;
  while (const auto batch = loader.next()) note(*batch, after);
  EXPECT_EQ(loader.observe().verification->bad, 0) << "the block is not even read";

  const std::int64_t first = found.edits[0].first * document;
  const std::int64_t last = found.edits[0].last * document;
  EXPECT_LE(first, bad);
  EXPECT_EQ(last,
            static_cast<std::int64_t>(stored_.tokens().size() / document) * document + document);
  std::int64_t lost = 0;
  for (std::int64_t w = 0; w < windows(); ++w) {
    if (meets(w, bad, bad + block)) {
      EXPECT_FALSE(before.contains(w) || after.contains(w)) << "window " << w;
    }
    if (meets(w, first, last)) continue;
    EXPECT_FALSE(before.contains(w) && after.contains(w)) << "window " << w;
    lost += before.contains(w) || after.contains(w) ? 0 : 1;
  }
  // All other samples must be served exactly once. Only the samples that do not fill a whole batch
  // are left out.
  EXPECT_LE(lost, 1);

  // A run can resume from the state of the edited run if it has the same edits.
  EXPECT_EQ(loader.state().edits, options_.edits);
}

}  // namespace
}  // namespace millrace::loader
