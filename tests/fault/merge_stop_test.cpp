// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <fstream>
#include <iostream>
#include <thread>
#include <utility>

#include <millrace/formats/mmidx.hpp>

#include "merge/content_key.hpp"

#include "support/merge_fault.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::files_of;
using test::strings;

class MergeStop : public test::merge_fault {
 protected:
  // Stops a merge at its first check for a signal, the next merge at its second check, and so on,
  // until a merge completes.
  void stop_at_each_look(const strings& more, const file_set& old) {
    const file_set wanted = undisturbed(more);
    int stops = 0;
    for (int look = 1;; ++look, ++stops) {
      SCOPED_TRACE(look);
      empty_out();
      for (const auto& [name, bytes] : old) test::write_text(out() / name, bytes);
      const auto result = run(old.empty() ? more : with(more, "--overwrite"),
                              {"MILLRACE_TEST_STOP_AT=look:" + std::to_string(look)});
      if (result.status == 0) break;
      expect_sentence(result, "stopped by SIGTERM: the new files were removed");
      EXPECT_TRUE(files_of(out()) == old);
      if (HasFailure()) return;
    }
    expect_files(wanted);
    std::cout << stops << " stops\n";
    EXPECT_GT(stops, 20);
  }

  /// Replaces the parts by a single part, which has one document of 64 MiB and no sidecars.
  void make_giant_part() {
    fs::remove_all(parts());
    fs::create_directory(parts());
    std::ofstream(parts() / "g.bin").close();
    fs::resize_file(parts() / "g.bin", giant_bytes);
    const std::vector<std::int32_t> lengths = {giant_bytes / 2};
    const std::vector<std::int64_t> ends = {0, 1};
    test::write_bytes(parts() / "g.idx",
                      formats::encode_mmidx(formats::dtype::uint16, lengths, ends));
  }
  static constexpr std::int32_t giant_bytes = 64 << 20;

  // Waits until the program has begun to write, then pauses it with SIGSTOP. Returns false if the
  // program ended before that.
  bool caught_writing(const test::running_program& program, const strings& more) const {
    const fs::path file = out() / (more.empty() ? "whole.bin.partial" : "whole.shuffle.partial");
    while (!fs::exists(file) && !program.ended()) std::this_thread::yield();
    program.send(SIGSTOP);
    return fs::exists(file) && !program.ended();
  }
};

TEST_F(MergeStop, AtAnyLookRemovesWhatWasWritten) {
  stop_at_each_look({}, {});
}

TEST_F(MergeStop, AtAnyLookOfAShuffleRemovesWhatWasWritten) {
  stop_at_each_look(shuffled, {});
}

TEST_F(MergeStop, AtAnyLookOfDroppingDuplicatesRemovesWhatWasWritten) {
  if (!has_xxhash()) GTEST_SKIP() << "this build has no xxHash";
  stop_at_each_look(dropping, {});
}

TEST_F(MergeStop, AtAnyLookOfAReplacementLeavesTheOldOutputWhole) {
  stop_at_each_look({}, undisturbed(shuffled));
  stop_at_each_look(shuffled, undisturbed({}));
}

// The merge checks for a signal every few MiB, even within a large document.
TEST_F(MergeStop, LooksForASignalEveryFewMebibytes) {
  make_giant_part();
  for (const strings& more : {strings{}, shuffled, dropping}) {
    if (more == dropping && !has_xxhash()) continue;
    // A shuffle and a merge without duplicates process the tokens three times. Both read them and
    // write the output. One stores a temporary copy before, the other reads them to compare them.
    const int looks = giant_bytes / (4 << 20) * (more.empty() ? 1 : 3);
    empty_out();
    const auto result = run(more, {"MILLRACE_TEST_STOP_AT=look:" + std::to_string(looks)});
    expect_sentence(result, "stopped by SIGTERM");
    EXPECT_TRUE(files_of(out()).empty());
  }
}

TEST_F(MergeStop, AnySignalThatAsksToStopDoes) {
  make_giant_part();
  for (const strings& more : {strings{}, shuffled}) {
    for (const auto& [signal, name] : std::vector<std::pair<int, std::string>>{
             {SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}}) {
      SCOPED_TRACE(name);
      bool stopped = false;
      // Several attempts, because the program may end before the signal.
      for (int attempt = 0; attempt < 20 && !stopped; ++attempt) {
        empty_out();
        test::running_program program(command(more));
        if (caught_writing(program, more)) program.send(signal);
        program.send(SIGCONT);
        const auto result = program.wait();
        if (result.status == 0) continue;
        stopped = true;
        expect_sentence(result, "stopped by " + name + ": the new files were removed");
        EXPECT_TRUE(files_of(out()).empty());
      }
      EXPECT_TRUE(stopped);
    }
  }
}

// A program may start with some signals ignored, for example under `nohup`. It must continue to
// ignore them.
TEST_F(MergeStop, ASignalThatWasIgnoredAtTheStartStaysIgnored) {
  make_giant_part();
  for (const strings& more : {strings{}, shuffled}) {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
      SCOPED_TRACE(signal);
      empty_out();
      test::program_options options;
      options.ignored_signals = {signal};
      test::running_program program(command(more), options);
      EXPECT_TRUE(caught_writing(program, more));
      program.send(signal);
      program.send(SIGCONT);
      const auto result = program.wait();
      EXPECT_EQ(result.status, 0) << result.err;
      EXPECT_EQ(fs::file_size(out() / "whole.bin"), std::uintmax_t{giant_bytes});
    }
  }
}

}  // namespace
}  // namespace millrace::preprocess
