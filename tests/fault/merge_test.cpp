// SPDX-License-Identifier: Apache-2.0
#include "support/merge_fault.hpp"

#include <iostream>
#include <map>
#include <thread>

#include "merge/content_key.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::files_of;
using test::killed;
using test::strings;

class MergeKill : public test::merge_fault {
 protected:
  // Runs the merge again after a kill. Files that the killed merge has published are complete, so
  // the new merge needs --overwrite to replace them.
  void expect_run_again(const file_set& wanted, const strings& more) {
    auto result = run(more);
    if (result.status == 1) {
      expect_sentence(result, "exists; pass --overwrite");
      result = run(with(more, "--overwrite"));
    }
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }

  void kill_at_each_step(const strings& more, const file_set& old) {
    const file_set wanted = undisturbed(more);
    int kills = 0;
    for (int step = 1;; ++step, ++kills) {
      SCOPED_TRACE(step);
      empty_out();
      for (const auto& [name, bytes] : old) test::write_text(out() / name, bytes);
      const strings all = old.empty() ? more : with(more, "--overwrite");
      const auto result = run(all, {"MILLRACE_TEST_KILL_AT=" + std::to_string(step)});
      if (result.status == 0) break;
      ASSERT_EQ(result.status, killed) << result.err;
      expect_nothing_half(wanted, old);
      expect_run_again(wanted, more);
      if (HasFailure()) return;
    }
    expect_files(wanted);
    std::cout << kills << " kills\n";
    EXPECT_GT(kills, 8);
  }
};

TEST_F(MergeKill, AtAnyStepHarmsNothing) {
  kill_at_each_step({}, {});
}

TEST_F(MergeKill, AtAnyStepOfAShuffleHarmsNothing) {
  kill_at_each_step(shuffled, {});
}

TEST_F(MergeKill, AtAnyStepOfDroppingDuplicatesHarmsNothing) {
  if (!has_xxhash()) GTEST_SKIP() << "this build has no xxHash";
  kill_at_each_step(dropping, {});
}

// After a kill at any step, there is no index, or all files with final names belong to the same
// dataset: the old one or the new one.
TEST_F(MergeKill, AtAnyStepOfAReplacementLeavesOldNewOrNone) {
  const file_set old = undisturbed(shuffled);
  kill_at_each_step({}, old);
}

// MILLRACE_KILLS sets the number of kills, as in the tests of preprocess_data.
TEST_F(MergeKill, AtAnyTimeHarmsNothing) {
  const char* given = std::getenv("MILLRACE_KILLS");
  const int wanted_kills = given != nullptr ? std::atoi(given) : 15;
  for (const strings& more : {strings{}, shuffled, dropping}) {
    if (more == dropping && !has_xxhash()) continue;
    const file_set wanted = undisturbed(more);
    empty_out();
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(run(more).status, 0);
    const auto whole_run = std::chrono::steady_clock::now() - start;
    int kills = 0;
    for (int round = 0; kills < wanted_kills && round < 5 * wanted_kills; ++round) {
      SCOPED_TRACE(round);
      empty_out();
      {
        test::running_program program(command(more));
        std::this_thread::sleep_for(whole_run * static_cast<int>(random_() % 1000) / 1000);
        program.kill();
        kills += program.wait().status == killed ? 1 : 0;
      }
      expect_nothing_half(wanted, {});
      expect_run_again(wanted, more);
      if (HasFailure()) return;
    }
    EXPECT_GE(kills, wanted_kills);
  }
}

// A killed shuffle leaves a temporary file as large as the data. The next merge removes this file,
// even if that merge does not shuffle.
TEST_F(MergeKill, AShuffleIsForgottenByAMergeWithoutOne) {
  ASSERT_EQ(run(shuffled, {"MILLRACE_TEST_KILL_AT=sync:1"}).status, killed);
  ASSERT_TRUE(fs::exists(out() / "whole.shuffle.partial"));
  const auto result = run({});
  ASSERT_EQ(result.status, 0) << result.err;
  expect_files(undisturbed({}));
}

TEST_F(MergeKill, TwoAtATimeDoNotMix) {
  const file_set wanted = undisturbed({});
  int refused = 0;
  for (int round = 0; round < 10; ++round) {
    empty_out();
    test::running_program first(command({}));
    // A writer locks its partial file after it creates it, and writes to it only then. So the file
    // proves a lock only once it holds bytes.
    const auto locked = [&] {
      std::error_code absent;
      const auto size = fs::file_size(out() / "whole.bin.partial", absent);
      return !absent && size > 0;
    };
    while (!locked() && !first.ended()) std::this_thread::yield();
    first.send(SIGSTOP);
    if (locked()) {
      expect_sentence(run({"--overwrite"}), "is another process writing it?");
      ++refused;
    }
    first.send(SIGCONT);
    EXPECT_EQ(first.wait().status, 0);
    expect_files(wanted);
  }
  EXPECT_GT(refused, 0);
}

class MergeDamage : public test::merge_fault {
 protected:
  // Damages a file of the input. Expects an error message that names the file, and no output files.
  // Then restores the file.
  void expect_told(const std::string& name, const std::string& damaged) {
    SCOPED_TRACE(name);
    const std::string good = test::read_text(parts() / name);
    ASSERT_NE(damaged, good);
    test::write_text(parts() / name, damaged);
    for (const strings& more : {strings{}, shuffled}) {
      empty_out();
      expect_sentence(run(more), name.substr(0, name.rfind('.')));
      EXPECT_TRUE(files_of(out()).empty());
    }
    test::write_text(parts() / name, good);
  }
  std::string part(const std::string& end) const { return part_name(1) + end; }
};

TEST_F(MergeDamage, TruncatedPartsAreTold) {
  const file_set wanted = undisturbed({});
  for (const char* end : {".bin", ".idx", ".sum", ".src", ".meta"}) {
    const std::string good = test::read_text(parts() / part(end));
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{9}, good.size() / 2, good.size() - 1}) {
      SCOPED_TRACE(size);
      // A .meta is valid even without its last newline.
      if (size + 1 == good.size() && end == std::string(".meta")) continue;
      expect_told(part(end), good.substr(0, size));
    }
  }
  ASSERT_EQ(run({}).status, 0);
  expect_files(wanted);
}

// Changes one bit of the tokens, the index or the checksums. The sizes stay right, so only the
// checksums can show the damage.
TEST_F(MergeDamage, PartsThatAreNotWhatTheirSumSaysAreTold) {
  for (const char* end : {".bin", ".idx", ".sum"}) {
    const std::string good = test::read_text(parts() / part(end));
    for (int round = 0; round < 6; ++round) {
      std::string changed = good;
      const std::size_t at = round == 0 ? good.size() - 1 : random_() % good.size();
      changed[at] = static_cast<char>(changed[at] ^ (1 << (random_() % 8)));
      SCOPED_TRACE(at);
      expect_told(part(end), changed);
    }
  }
}

// Replaces each sidecar with that of another part. Each file is valid by itself.
TEST_F(MergeDamage, SidecarsOfAnotherPartAreTold) {
  for (const char* end : {".sum", ".src", ".meta"}) {
    expect_told(part(end), test::read_text(parts() / (part_name(2) + end)));
  }
}

TEST_F(MergeDamage, PartsThatAreNotThereAreTold) {
  for (const char* end : {".bin", ".idx"}) {
    const fs::path path = parts() / part(end);
    const std::string good = test::read_text(path);
    fs::remove(path);
    expect_sentence(run({}), "there is no " + path.string());
    EXPECT_TRUE(files_of(out()).empty());
    test::write_text(path, good);
  }
  for (const char* end : {".bin", ".idx", ".sum", ".src", ".meta"}) fs::remove(parts() / part(end));
  fs::remove(parts() / part(".bad"));
  expect_sentence(run({}), part_name(2) + ".meta");
  EXPECT_TRUE(files_of(out()).empty());
}

}  // namespace
}  // namespace millrace::preprocess
