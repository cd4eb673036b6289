// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/reader_choice.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

/// The case for which io_uring is intended: 100 GiB of local files that are not in memory, 16 GiB
/// of memory, and every reader available.
reader_facts cold_facts() {
  reader_facts f;
  f.bytes = 100 * gib;
  f.files = 3;
  f.maps = 3;
  f.most_maps = 4096;
  f.available = 16 * gib;
  f.available_by = "MemAvailable";
  f.resident = 0.01;
  f.resident_by = "cachestat";
  f.uring = true;
  f.uring_why = "a ring could be made";
  return f;
}

struct branch {
  const char* name;
  std::function<void(reader_facts&)> change;
  back_end take;
  map_advice advice;
  const char* why;
};

class ChooseReader : public testing::TestWithParam<branch> {};

INSTANTIATE_TEST_SUITE_P(
    All, ChooseReader,
    testing::Values(
        branch{
            "beyond_memory", [](reader_facts&) {}, back_end::io_uring, map_advice::random,
            "3 files of 100.0 GiB, 1 % of it in memory (cachestat), 16.0 GiB of available memory "
            "(MemAvailable); the page cache can keep little of them"},
        branch{"no_ring",
               [](reader_facts& f) {
                 f.uring = false;
                 f.uring_why = "a filter forbids it";
               },
               back_end::mmap, map_advice::random, "io_uring was not chosen: a filter forbids it"},
        branch{"just_twice_the_memory", [](reader_facts& f) { f.bytes = 32 * gib; },
               back_end::io_uring, map_advice::random, "can keep little"},
        branch{"less_than_twice_the_memory", [](reader_facts& f) { f.bytes = 32 * gib - 2; },
               back_end::mmap, map_advice::by_memory, "the page cache can keep much of them"},
        branch{"fits", [](reader_facts& f) { f.bytes = 8 * gib; }, back_end::mmap,
               map_advice::resident, "3 files of 8.0 GiB fit into half of 16.0 GiB"},
        branch{"just_too_large_to_fit", [](reader_facts& f) { f.bytes = 8 * gib + 1; },
               back_end::mmap, map_advice::by_memory, "can keep much"},
        branch{"resident", [](reader_facts& f) { f.resident = 0.9; }, back_end::mmap,
               map_advice::resident, "90 % of it in memory (cachestat)"},
        branch{"not_quite_resident", [](reader_facts& f) { f.resident = 0.89; }, back_end::io_uring,
               map_advice::random, "89 % of it in memory"},
        branch{"nobody_tells_residency", [](reader_facts& f) { f.resident.reset(); },
               back_end::io_uring, map_advice::random, "an unknown share of it in memory"},
        branch{"nobody_tells_memory", [](reader_facts& f) { f.available.reset(); }, back_end::mmap,
               map_advice::random, "the available memory is unknown"},
        branch{"network", [](reader_facts& f) { f.network_files = 1; }, back_end::pread,
               map_advice::random, "1 of 3 files of 100.0 GiB are on network file systems"},
        branch{"network_that_would_fit",
               [](reader_facts& f) {
                 f.network_files = 3;
                 f.bytes = 100;
               },
               back_end::pread, map_advice::random, "3 of 3 files of 100 bytes"},
        branch{"tmpfs", [](reader_facts& f) { f.memory_files = 3; }, back_end::mmap,
               map_advice::by_memory, "are in memory (tmpfs)"},
        branch{"tmpfs_in_part", [](reader_facts& f) { f.memory_files = 2; }, back_end::io_uring,
               map_advice::random, "can keep little"},
        branch{"too_many_maps",
               [](reader_facts& f) {
                 f.files = 5000;
                 f.maps = 5000;
               },
               back_end::pread, map_advice::random, "need 5000 maps, more than the limit of 4096"},
        branch{"cufile",
               [](reader_facts& f) {
                 f.to_device = true;
                 f.request_bytes = 1 << 20;
                 f.cufile_direct = true;
                 f.cufile_why = "version 1.20, with nvidia-fs";
               },
               back_end::cufile, map_advice::random,
               "requests of 1.0 MiB to a GPU: version 1.20, with nvidia-fs"},
        branch{"cufile_of_small_requests",
               [](reader_facts& f) {
                 f.to_device = true;
                 f.request_bytes = (1 << 20) - 1;
                 f.cufile_direct = true;
               },
               back_end::io_uring, map_advice::random, "can keep little"},
        branch{"cufile_into_host_memory",
               [](reader_facts& f) {
                 f.request_bytes = 1 << 30;
                 f.cufile_direct = true;
               },
               back_end::io_uring, map_advice::random, "can keep little"},
        branch{"cufile_in_compatibility_mode",
               [](reader_facts& f) {
                 f.to_device = true;
                 f.request_bytes = 1 << 20;
                 f.cufile_why = "in compatibility mode";
               },
               back_end::io_uring, map_advice::random,
               "cuFile was not chosen: in compatibility mode"},
        branch{"no_files",
               [](reader_facts& f) {
                 f.files = 0;
                 f.bytes = 0;
               },
               back_end::mmap, map_advice::resident, "0 files of 0 bytes fit"}),
    [](const auto& b) { return std::string(b.param.name); });

TEST_P(ChooseReader, TakesTheOneItShouldAndSaysWhy) {
  reader_facts facts = cold_facts();
  GetParam().change(facts);
  const reader_choice choice = choose_reader(facts);
  EXPECT_EQ(name_of(choice.take), name_of(GetParam().take));
  EXPECT_EQ(choice.advice, GetParam().advice);
  EXPECT_THAT(choice.why, HasSubstr(GetParam().why));
}

// For any combination of facts, a reader must be chosen with a reason. The reason must have a
// number, or say that no number is known.
TEST(ChooseReaderByAnything, NeverChoosesWithoutAReason) {
  int choices = 0;
  for (const std::uint64_t bytes : {0ull, 100ull, 9ull * gib, 20ull * gib, 1000ull * gib}) {
    for (unsigned bits = 0; bits < 256; ++bits) {
      reader_facts f = cold_facts();
      f.bytes = bytes;
      if ((bits & 1U) != 0) f.available.reset();
      if ((bits & 2U) != 0) f.resident.reset();
      if ((bits & 4U) != 0) f.uring = false;
      if ((bits & 8U) != 0) f.network_files = 2;
      if ((bits & 16U) != 0) f.memory_files = 3;
      if ((bits & 32U) != 0) f.maps = 10'000;
      if ((bits & 64U) != 0) f.to_device = true;
      if ((bits & 64U) != 0) f.request_bytes = 4 << 20;
      if ((bits & 128U) != 0) f.cufile_direct = true;
      const reader_choice choice = choose_reader(f);
      EXPECT_NE(choice.take, back_end::automatic);
      EXPECT_NE(choice.why, "");
      EXPECT_NE(choice.why.find_first_of("0123456789"), std::string::npos) << choice.why;
      EXPECT_TRUE(f.uring || choice.take != back_end::io_uring);
      EXPECT_TRUE((f.cufile_direct && f.to_device) || choice.take != back_end::cufile);
      ++choices;
    }
  }
  EXPECT_EQ(choices, 5 * 256);
}

TEST(BackEnd, NamesAreReadBack) {
  for (const back_end b : {back_end::automatic, back_end::mmap, back_end::pread, back_end::io_uring,
                           back_end::cufile}) {
    EXPECT_EQ(back_end_of(name_of(b)), b);
  }
}

TEST(BackEnd, OtherNamesAreRefused) {
  for (const std::string text : {"", "uring", "MMAP", "mmap "}) {
    try {
      (void)back_end_of(text, "--io");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const config_error& e) {
      EXPECT_EQ(std::string(e.what()),
                "--io is '" + text + "', expected auto, mmap, pread, io_uring or cufile");
    }
  }
}

TEST(ReadableBytes, AreInTheLargestUnit) {
  EXPECT_EQ(detail::readable_bytes(0), "0 bytes");
  EXPECT_EQ(detail::readable_bytes(1023), "1023 bytes");
  EXPECT_EQ(detail::readable_bytes(1024), "1.0 KiB");
  EXPECT_EQ(detail::readable_bytes(1536), "1.5 KiB");
  EXPECT_EQ(detail::readable_bytes((1 << 20) - 1), "1023.9 KiB");
  EXPECT_EQ(detail::readable_bytes(1 << 20), "1.0 MiB");
  EXPECT_EQ(detail::readable_bytes(25 * gib), "25.0 GiB");
  EXPECT_EQ(detail::readable_bytes(std::uint64_t{5000} * 1024 * gib), "5000.0 TiB");
}

}  // namespace
}  // namespace millrace::loader
