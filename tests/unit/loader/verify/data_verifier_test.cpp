// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/data_verifier.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/detail/memory/available_memory.hpp>

#include "support/summed_dataset.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;
using ids = std::uint16_t;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr ids largest = 31999;

bool always(int, std::uint64_t, std::uint64_t) {
  return true;
}
bool never(int, std::uint64_t, std::uint64_t) {
  return false;
}

verify_options first_touch() {
  return {.scrub_bytes_per_second = 0, .in_memory = always};
}
verify_options background() {
  return {.mode = verify_mode::background, .scrub_bytes_per_second = std::uint64_t{1} << 40};
}

/// A dataset of `blocks` + 1/2 blocks, from which samples are read.
class sample_source {
 public:
  explicit sample_source(std::size_t blocks = 4)
      : data_((blocks * mib + mib / 2) / sizeof(ids), largest) {}

  test::summed_dataset<ids>& data() { return data_; }
  std::vector<verified_file> files() const { return {data_.file()}; }

  /// Reads `size` bytes at `offset` and passes them to the verifier as a sample.
  void serve(data_verifier& verifier, std::uint64_t offset, std::uint64_t size,
             std::int64_t sample) {
    std::vector<std::byte> bytes(size);
    const io::unique_fd fd = io::open_read_only(data_.bin());
    ASSERT_EQ(io::pread_some(fd, bytes, offset, data_.bin()), size);
    const read_request request{{0, offset, size}, bytes.data()};
    verifier.check({&request, 1}, sample);
  }

  std::string refusal(data_verifier& verifier, std::uint64_t offset, std::uint64_t size,
                      std::int64_t sample) {
    try {
      serve(verifier, offset, size, sample);
    } catch (const format_error& e) {
      at_byte = e.offset();
      return e.what();
    }
    return "served";
  }

  std::uint64_t at_byte = 0;

 private:
  test::summed_dataset<ids> data_;
};

/// Waits until `so` returns true, but at most ten seconds. Returns whether `so` returned true.
bool comes(const std::function<bool()>& so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Waits for 100 ms, then returns `so()`. Used for conditions that must not become true.
bool comes_soon(const std::function<bool()>& so) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return so();
}

TEST(DataVerifier, ChecksEachBlockOnce) {
  sample_source source;
  data_verifier verifier(source.files(), first_touch());
  for (int round = 0; round < 3; ++round) {
    source.serve(verifier, 10, 8194, 0);
    source.serve(verifier, mib - 100, 8194, 1);   // needs blocks 0 and 1
    source.serve(verifier, 4 * mib + 8, 100, 2);  // needs the last block, which is short
    EXPECT_EQ(verifier.report().touched, 3);
  }
  source.serve(verifier, 100, 3 * mib, 3);
  const verify_report report = verifier.report();
  EXPECT_EQ(report.touched, 5);
  EXPECT_EQ(report.blocks, 5);
  EXPECT_EQ(report.scrubbed, 0);
  EXPECT_EQ(report.bad, 0);
  EXPECT_EQ(report.found, 0);
  EXPECT_GT(report.touch_cpu_ns, 0U);
}

TEST(DataVerifier, FindsABitThatIsTurnedRound) {
  sample_source source;
  test::flip_bit(source.data().bin(), 2 * mib + 77777);
  data_verifier verifier(source.files(), first_touch());
  source.serve(verifier, 0, 2 * mib, 0);
  const std::string what = source.refusal(verifier, 2 * mib + 8, 8194, 1234);
  EXPECT_THAT(what, HasSubstr(source.data().bin().string()));
  EXPECT_THAT(what, HasSubstr("block 2, the bytes 2097152 to 3145727, has changed since it was "
                              "written: its checksum is "));
  EXPECT_THAT(what, HasSubstr("; sample 1234 needs it: restore a good copy of the file"));
  EXPECT_EQ(source.at_byte, 2 * mib);
  // The error must be repeated without reading the block again. Samples of other blocks must still
  // be served.
  EXPECT_THAT(source.refusal(verifier, 3 * mib - 8, 16, 1235), HasSubstr("sample 1235 needs it"));
  source.serve(verifier, 3 * mib, 8194, 1236);
  const verify_report report = verifier.report();
  EXPECT_EQ(report.touched, 4);
  EXPECT_EQ(report.bad, 1);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, finding_kind::checksum);
  EXPECT_EQ(report.findings[0].block, 2);
  EXPECT_EQ(report.findings[0].sample, 1234);
  EXPECT_FALSE(report.findings[0].served);
}

TEST(DataVerifier, FindsEveryBitOfTheLastByteAndTheFirst) {
  sample_source source(1);
  const std::uint64_t size = source.data().tokens().size() * sizeof(ids);
  for (const std::uint64_t byte : {std::uint64_t{0}, mib - 1, mib, size - 1}) {
    test::flip_bit(source.data().bin(), byte);
    data_verifier verifier(source.files(), first_touch());
    EXPECT_THAT(source.refusal(verifier, byte / 2 * 2, 2, 0),
                HasSubstr("has changed since it was written"))
        << byte;
    test::flip_bit(source.data().bin(), byte);
  }
  data_verifier verifier(source.files(), first_touch());
  source.serve(verifier, 0, size, 0);
}

TEST(DataVerifier, GoesOnWithAReportWhereThatIsThePolicy) {
  sample_source source;
  test::flip_bit(source.data().bin(), mib);
  verify_options options = first_touch();
  options.bad_blocks = bad_block_policy::report;
  data_verifier verifier(source.files(), options);
  source.serve(verifier, mib, 8194, 7);
  source.serve(verifier, mib, 8194, 8);
  const verify_report report = verifier.report();
  EXPECT_EQ(report.bad, 1);
  ASSERT_EQ(report.found, 1);
  EXPECT_EQ(report.findings[0].sample, 7);
  EXPECT_THAT(report.text(), HasSubstr("1 findings, the first: block 1, the bytes"));
}

TEST(DataVerifier, LooksAheadWithoutAWord) {
  sample_source source;
  test::flip_bit(source.data().bin(), 0);
  data_verifier verifier(source.files(), first_touch());
  const std::vector<file_range> soon = {{0, 0, 8194}, {0, mib - 1, 2}, {0, 5, 0}};
  verifier.touch(soon);
  verifier.touch(soon);
  EXPECT_EQ(verifier.report().touched, 2);
  EXPECT_EQ(verifier.report().bad, 1);
  EXPECT_THAT(source.refusal(verifier, 16, 2, 3), HasSubstr("sample 3 needs it"));
}

// To verify a window of 8 KiB, the verifier must not read a whole block of 1 MiB from disk.
TEST(DataVerifier, LeavesABlockThatIsNotInMemory) {
  sample_source source;
  test::flip_bit(source.data().bin(), 0);
  verify_options options = first_touch();
  std::atomic<bool> here = false;
  options.in_memory = [&](int, std::uint64_t, std::uint64_t) { return here.load(); };
  data_verifier verifier(source.files(), options);
  source.serve(verifier, 16, 8194, 0);
  source.serve(verifier, 16, 8194, 1);
  EXPECT_EQ(verifier.report().touched, 0);
  EXPECT_EQ(verifier.report().left, 1);
  // Without a scrubber, the bad block is found only when it is in memory. By then, a sample has
  // been served from it.
  here = true;
  EXPECT_THAT(source.refusal(verifier, 16, 8194, 2), HasSubstr("served"));
  EXPECT_EQ(verifier.report().touched, 1);
}

TEST(DataVerifier, AsksTheKernelWhatIsInMemory) {
  sample_source source;  // the file was just written, so it is in memory
  verify_options options = first_touch();
  options.in_memory = {};
  data_verifier verifier(source.files(), options);
  source.serve(verifier, 0, 4 * mib, 0);
  if (verifier.report().left == 4) GTEST_SKIP() << "this kernel does not say what is in memory";
  EXPECT_EQ(verifier.report().touched, 4);
}

TEST(Scrubber, FindsWhatNobodyNeeds) {
  sample_source source;
  test::flip_bit(source.data().bin(), 3 * mib + 5);
  data_verifier verifier(source.files(), background());
  ASSERT_TRUE(comes([&] { return verifier.report().scrubbed_all; }));
  const verify_report report = verifier.report();
  EXPECT_EQ(report.scrubbed, 6);  // five blocks of the `.bin`, one of the `.idx`
  ASSERT_EQ(report.found, 1);
  EXPECT_EQ(report.findings[0].block, 3);
  EXPECT_TRUE(report.findings[0].by_scrubber);
  EXPECT_FALSE(report.findings[0].served);
  // Samples that do not need the bad block must be served. The run must end at the first sample
  // that needs it.
  source.serve(verifier, 0, 3 * mib, 0);
  EXPECT_THAT(source.refusal(verifier, 3 * mib, 2, 1), HasSubstr("sample 1 needs it"));
}

TEST(Scrubber, FindsAFaultOfTheIndex) {
  sample_source source(1);
  test::flip_bit(test::suffixed(source.data().prefix(), ".idx"), 100);
  data_verifier verifier(source.files(), background());
  ASSERT_TRUE(comes([&] { return verifier.report().scrubbed_all; }));
  const verify_report report = verifier.report();
  ASSERT_EQ(report.found, 1);
  EXPECT_FALSE(report.findings[0].of_bin);
  EXPECT_EQ(report.findings[0].path.extension(), ".idx");
}

// A bad block was served before it was checked. The run must end as soon as the fault is detected.
TEST(Scrubber, EndsTheRunThatWasServedABadBlock) {
  sample_source source;
  test::flip_bit(source.data().bin(), 2 * mib);
  verify_options options = first_touch();
  options.in_memory = never;
  // One block per second, so that the bad block is served before it is scrubbed.
  options.scrub_bytes_per_second = mib;
  data_verifier verifier(source.files(), options);
  source.serve(verifier, 2 * mib, 8194, 41);
  EXPECT_EQ(verifier.report().left, 1);
  ASSERT_TRUE(comes([&] { return verifier.report().bad == 1; }));
  // The block that was served must be checked before blocks that were not served.
  EXPECT_LE(verifier.report().scrubbed, 3);
  const std::string what = source.refusal(verifier, 0, 2, 99);
  EXPECT_THAT(what, HasSubstr("block 2, the bytes"));
  EXPECT_THAT(what, HasSubstr("sample 41 was served with it before this was detected"));
}

TEST(Scrubber, ChecksWhatWasLeftAfterItHasBeenThroughEverything) {
  sample_source source;
  verify_options options = background();
  options.mode = verify_mode::first_touch;
  options.in_memory = never;
  options.scrub_part = 1;  // part 1 of 2; another process scrubs part 0
  options.scrub_parts = 2;
  data_verifier verifier(source.files(), options);
  ASSERT_TRUE(comes([&] { return verifier.report().scrubbed_all; }));
  EXPECT_EQ(verifier.report().scrubbed, 3);
  source.serve(verifier, 0, 4 * mib, 0);
  ASSERT_TRUE(comes([&] { return verifier.report().scrubbed >= 5; }));
  source.serve(verifier, 0, 4 * mib, 1);
  EXPECT_EQ(verifier.report().bad, 0);
}

TEST(Scrubber, KeepsItsPace) {
  sample_source source(8);
  verify_options options = background();
  options.scrub_bytes_per_second = 40 * mib;
  const auto begin = std::chrono::steady_clock::now();
  data_verifier verifier(source.files(), options);
  ASSERT_TRUE(comes([&] { return verifier.report().scrubbed_all; }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 8.5 / 40 * 0.9);
}

TEST(Scrubber, IsOneForAllAndEndsWithThem) {
  sample_source one(1), two(2);
  const auto count = [] {
    int threads = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      threads += read_system_file(task.path() / "comm") == "mr-scrubber" ? 1 : 0;
    }
    return threads;
  };
  {
    data_verifier first(one.files(), background());
    data_verifier second(two.files(), background());
    EXPECT_EQ(count(), 1);
    ASSERT_TRUE(comes([&] { return first.report().scrubbed_all && second.report().scrubbed_all; }));
  }
  EXPECT_EQ(count(), 0);
  data_verifier again(one.files(), background());
  EXPECT_TRUE(comes([&] { return again.report().scrubbed_all; }));
}

TEST(Scrubber, StopsInTheMiddle) {
  sample_source source;
  verify_options options = background();
  options.scrub_bytes_per_second = 1;  // one block in twelve days
  const auto begin = std::chrono::steady_clock::now();
  {
    data_verifier verifier(source.files(), options);
    ASSERT_TRUE(comes([&] { return verifier.report().scrubbed == 1; }));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Scrubber, SaysWhatItCannotRead) {
  sample_source source;
  std::filesystem::resize_file(source.data().bin(), 3 * mib);
  data_verifier verifier(source.files(), background());
  // The unreadable block must be skipped and must not count as checked.
  ASSERT_TRUE(comes([&] { return verifier.report().found > 0; }));
  EXPECT_FALSE(comes_soon([&] { return verifier.report().scrubbed_all; }));
  const verify_report report = verifier.report();
  EXPECT_EQ(report.found, 1);
  EXPECT_EQ(report.findings[0].kind, finding_kind::unreadable);
  EXPECT_THAT(report.findings[0].what, HasSubstr("it ends there, but should have"));
}

// A .sum file may have any size. The verifier must find out that the file is too long without
// reading it into memory.
TEST(Scrubber, SaysThatASumIsFarTooLong) {
  sample_source source(1);
  const auto sum = test::suffixed(source.data().prefix(), ".sum");
  std::error_code refused;
  std::filesystem::resize_file(sum, std::uintmax_t{1} << 43, refused);
  if (refused) GTEST_SKIP() << "this file system has no such files: " << refused.message();
  data_verifier verifier(source.files(), background());
  ASSERT_TRUE(comes([&] { return verifier.report().found > 0; }));
  EXPECT_THAT(verifier.report().findings[0].what,
              HasSubstr("the file has 8796093022208 bytes, expected "));
  EXPECT_THAT(source.refusal(verifier, 0, 2, 0), HasSubstr("the file has 8796093022208 bytes"));
}

// An unchecked block was served and then dropped from the list of such blocks. This process must
// check the block, even if it belongs to the part of another process. That process does not know
// that the block was served.
TEST(Scrubber, ChecksWhatWasServedWhosePartSoEverItIs) {
  sample_source source;
  verify_options options = background();
  options.scrub_parts = 1000;
  options.scrub_part = 999;  // no block of these files is in this part
  const auto core =
      std::make_shared<detail::verify_core>(source.files(), options, open_files::of_process());
  block_states& states = (*core)[0].bin.states();
  (void)states.serve(2);
  core->set_forgotten(true);
  scrubber one;
  one.add(core);
  EXPECT_TRUE(comes([&] { return core->scrubbed_all(); }));
  EXPECT_EQ(states[2], block_state::good);
  EXPECT_EQ(states[1], block_state::unseen);
  one.remove(core.get());
}

TEST(DataVerifier, ReadsByTheTableThatItIsGiven) {
  sample_source source;
  const auto table = std::make_shared<open_files>();
  data_verifier verifier(source.files(), first_touch(), table);
  source.serve(verifier, 10, 8194, 0);
  EXPECT_EQ(table->usage().opens, 1);
}

TEST(DataVerifier, RefusesASumThatIsNone) {
  sample_source source(1);
  const auto sum = test::suffixed(source.data().prefix(), ".sum");
  test::flip_bit(sum, 33);
  data_verifier verifier(source.files(), first_touch());
  EXPECT_THAT(source.refusal(verifier, 0, 2, 0),
              HasSubstr(sum.string() + ": the root does not match the checksums"));
  // The second attempt must also be refused.
  EXPECT_THAT(source.refusal(verifier, 0, 2, 0), HasSubstr("the root does not match"));

  test::write_text(sum, "MILLSUM");
  data_verifier cut(source.files(), first_touch());
  EXPECT_THAT(source.refusal(cut, 0, 2, 0), HasSubstr(sum.string()));
}

TEST(DataVerifier, RefusesASumOfAnotherDataset) {
  sample_source source(1), other(2);
  std::filesystem::copy_file(test::suffixed(other.data().prefix(), ".sum"),
                             test::suffixed(source.data().prefix(), ".sum"),
                             std::filesystem::copy_options::overwrite_existing);
  data_verifier verifier(source.files(), first_touch());
  EXPECT_THAT(source.refusal(verifier, 0, 2, 0),
              HasSubstr("the checksums are of a .bin of 2621440 bytes, but that of the .idx has "
                        "1572864: they belong to another dataset"));
}

TEST(Scrubber, SaysThatASumIsNone) {
  sample_source source(1);
  test::flip_bit(test::suffixed(source.data().prefix(), ".sum"), 33);
  data_verifier verifier(source.files(), background());
  ASSERT_TRUE(comes([&] { return verifier.report().found > 0; }));
  EXPECT_FALSE(comes_soon([&] { return verifier.report().scrubbed_all; }));
  ASSERT_EQ(verifier.report().found, 1);
  EXPECT_EQ(verifier.report().findings[0].path.extension(), ".sum");
  EXPECT_EQ(verifier.report().findings[0].block, -1);
}

TEST(DataVerifier, SaysThatThereIsNoSum) {
  sample_source source(1);
  std::filesystem::remove(test::suffixed(source.data().prefix(), ".sum"));
  data_verifier verifier(source.files(), first_touch());
  source.serve(verifier, 0, mib, 0);
  const verify_report report = verifier.report();
  EXPECT_EQ(report.touched, 0);
  EXPECT_EQ(report.files_without_sum, 1);
  EXPECT_THAT(report.text(),
              HasSubstr("1 of 1 files have no .sum, e.g. " + source.data().bin().string()));
}

TEST(DataVerifier, FindsATokenThatIsNoId) {
  sample_source source;
  std::uint64_t place = mib / 2 + 1000;  // index of a token in the second block
  while (source.data().tokens()[place] != largest) ++place;
  for (const bool with_sum : {true, false}) {
    if (!with_sum) std::filesystem::remove(test::suffixed(source.data().prefix(), ".sum"));
    verify_options options = first_touch();
    options.vocab_size = largest + 1;
    data_verifier enough(source.files(), options);
    source.serve(enough, 0, 4 * mib, 0);
    EXPECT_EQ(enough.report().touched, 4);  // each block once, for both checks

    options.vocab_size = largest;
    data_verifier verifier(source.files(), options);
    const std::string expected = "token " + std::to_string(place) +
                                 " of the file is 31999, expected 0 to 31998 (vocab_size); sample "
                                 "5 needs it: tokenize with the same vocabulary";
    EXPECT_THAT(source.refusal(verifier, 2 * place - 2, 4, 5), HasSubstr(expected));
    EXPECT_EQ(source.at_byte, 2 * place);
    // A sample of the same block must be served if the sample does not have the bad token.
    source.serve(verifier, 2 * place + 2, 2, 6);
    EXPECT_EQ(verifier.report().findings.at(0).kind, finding_kind::token);
  }
}

// A token id outside the vocabulary must end the run before a device gets it, even if the block is
// not checked.
TEST(DataVerifier, LooksAtTokensOfBlocksThatNobodyHasChecked) {
  sample_source source(1);
  std::uint64_t place = 0;
  while (source.data().tokens()[place] != largest) ++place;
  for (const auto mode : {verify_mode::off, verify_mode::first_touch, verify_mode::background}) {
    verify_options options = first_touch();
    options.mode = mode;
    options.vocab_size = largest;
    options.in_memory = never;
    options.bad_blocks = bad_block_policy::report;
    data_verifier verifier(source.files(), options);
    EXPECT_THAT(source.refusal(verifier, 2 * place, 2, 6), HasSubstr("sample 6 needs it"))
        << name_of(mode);
    EXPECT_EQ(verifier.report().touched, 0);
  }
}

TEST(DataVerifier, DoesNothingWhereItIsOff) {
  sample_source source(1);
  test::flip_bit(source.data().bin(), 0);
  verify_options options = first_touch();
  options.mode = verify_mode::off;
  options.scrub_bytes_per_second = 1 << 30;
  data_verifier verifier(source.files(), options);
  verifier.touch(std::vector<file_range>{{0, 0, 2}});
  source.serve(verifier, 0, mib, 0);
  EXPECT_EQ(verifier.report().touched + verifier.report().scrubbed, 0);
  EXPECT_EQ(verifier.report().text(), "verify off");
}

TEST(DataVerifier, RefusesOptionsOutOfRange) {
  const auto refused = [](const verify_options& options) {
    try {
      const data_verifier verifier({}, options);
    } catch (const config_error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused({.vocab_size = -1}), HasSubstr("vocab_size is -1"));
  EXPECT_THAT(refused({.scrub_part = 2, .scrub_parts = 2}), HasSubstr("scrub_part is 2"));
  EXPECT_THAT(refused({.scrub_parts = 0}), HasSubstr("scrub_parts 0"));
  EXPECT_EQ(refused({}), "accepted");
  EXPECT_EQ(parse_verify_mode("background"), verify_mode::background);
  EXPECT_THROW((void)parse_verify_mode("on"), config_error);
}

// If another process replaced or truncated the file, the verifier must report the same error as a
// reader, not a checksum mismatch.
TEST(DataVerifier, MeetsAFileThatWasCutOff) {
  sample_source source;
  data_verifier verifier(source.files(), first_touch());
  source.serve(verifier, 0, 2, 0);
  std::filesystem::resize_file(source.data().bin(), 2 * mib);
  std::vector<std::byte> bytes(8);
  const read_request request{{0, 3 * mib, 8}, bytes.data()};
  for (int i = 0; i < 2; ++i) {  // twice, to test that the second call does not deadlock
    EXPECT_THROW(verifier.check({&request, 1}, 1), io_error);
  }
}

// If a reader has mapped the file, the verifier must check the bytes in that map. A lost page must
// not kill the process.
TEST(DataVerifier, ReadsTheMapOfAReader) {
  sample_source source;
  const auto table = open_files::of_process();
  const auto file = table->attach(source.data().file().file);
  const auto map = table->map_at(*file, 0).got;
  ASSERT_NE(map, nullptr);
  test::flip_bit(source.data().bin(), 2 * mib + 7);
  data_verifier verifier(source.files(), first_touch());
  source.serve(verifier, 0, 2 * mib, 0);
  source.serve(verifier, 4 * mib, mib / 2, 1);
  EXPECT_THAT(source.refusal(verifier, 2 * mib, 2, 2), HasSubstr("block 2, the bytes"));
  EXPECT_EQ(verifier.report().touched, 4);
  EXPECT_EQ(table->usage().maps, 1);  // only the reader has made a map

  std::filesystem::resize_file(source.data().bin(), 3 * mib);
  std::vector<std::byte> bytes(8);
  const read_request request{{0, 3 * mib + 8, 8}, bytes.data()};
  EXPECT_THROW(verifier.check({&request, 1}, 3), io_error);
}

// Several threads and the scrubber run together. Exactly one of them must check each block.
TEST(DataVerifier, IsForManyThreads) {
  for (int round = 0; round < 5; ++round) {
    sample_source source(16);
    test::flip_bit(source.data().bin(), 5 * mib + 5);
    verify_options options = first_touch();
    options.scrub_bytes_per_second = std::uint64_t{1} << 40;
    // Some blocks are reported as not in memory when they are served, so they are checked later.
    std::atomic<unsigned> turn = 0;
    options.in_memory = [&](int, std::uint64_t, std::uint64_t) { return ++turn % 3 != 0; };
    data_verifier verifier(source.files(), options);
    {
      std::vector<std::jthread> threads;
      for (std::uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          std::vector<std::byte> bytes(8);
          for (std::uint64_t i = 0; i < 200; ++i) {
            const file_range range{0, (i * 7919 + t * 31) % 16 * mib + 8 * t, 8};
            const read_request request{range, bytes.data()};
            verifier.touch({&range, 1});
            try {
              verifier.check({&request, 1}, static_cast<std::int64_t>(i));
            } catch (const format_error& e) {
              EXPECT_THAT(e.what(), HasSubstr("block 5, "));
            }
          }
        });
      }
    }
    ASSERT_TRUE(comes([&] { return verifier.report().scrubbed_all; }));
    const verify_report report = verifier.report();
    EXPECT_EQ(report.touched + report.scrubbed, 18);  // 17 blocks of the .bin, one of the .idx
    EXPECT_EQ(report.bad, 1);
    EXPECT_EQ(report.found, 1);
    std::vector<std::byte> bytes(8);
    const read_request request{{0, 5 * mib, 8}, bytes.data()};
    EXPECT_THROW(verifier.check({&request, 1}, 0), format_error);
  }
}

}  // namespace
}  // namespace millrace::loader
