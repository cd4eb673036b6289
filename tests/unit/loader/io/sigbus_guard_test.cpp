// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/sigbus_guard.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/io/mmap_reader.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

constexpr std::size_t page = 4096;

/// A mapped file of eight pages. The last four pages are lost.
class SigbusGuard : public testing::Test {
 protected:
  SigbusGuard() {
    test::write_bytes(folder_ / "a", std::vector<std::byte>(8 * page, std::byte{7}));
    map_ = io::file_mapping(folder_ / "a");
    std::filesystem::resize_file(folder_ / "a", 4 * page);
  }
  const std::byte* begin() const { return map_.bytes().data(); }
  const std::byte* end() const { return begin() + map_.bytes().size(); }

  test::temp_folder folder_;
  io::file_mapping map_;
};

TEST_F(SigbusGuard, CopiesUpToTheLostPage) {
  std::array<std::byte, 4 * page> to{};
  const std::array<copy_piece, 4> pieces{{{begin(), to.data(), page},
                                          {begin() + 3 * page, to.data() + page, page},
                                          {begin() + 4 * page - 10, to.data() + 2 * page, 20},
                                          {begin(), to.data() + 3 * page, page}}};
  for (int i = 0; i < 3; ++i) {  // several times, because the signal must not stay blocked
    EXPECT_EQ(copy_pieces(pieces, begin(), end()), 2u);
    EXPECT_EQ(to[2 * page - 1], std::byte{7});
    EXPECT_EQ(copy_pieces(std::span(pieces).subspan(3), begin(), end()), 1u);
    EXPECT_EQ(to[4 * page - 1], std::byte{7});
  }
}

TEST_F(SigbusGuard, CopiesNothingOfNothing) {
  EXPECT_EQ(copy_pieces({}, begin(), end()), 0u);
}

TEST_F(SigbusGuard, ThreadsDoNotDisturbOneAnother) {
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, lost = t % 2 == 0] {
      std::vector<std::byte> to(page);
      const copy_piece piece{begin() + (lost ? 5 * page : 2 * page), to.data(), page};
      for (int i = 0; i < 500; ++i) {
        if (copy_pieces({&piece, 1}, begin(), end()) != (lost ? 0u : 1u)) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

// The guard must work even on a thread that blocks all signals. Many threads do so to leave the
// signals to another thread.
TEST_F(SigbusGuard, BlockedSignalsAreNoMatter) {
  std::thread([&] {
    ::sigset_t all;
    ::sigfillset(&all);
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &all, nullptr), 0);
    std::vector<std::byte> to(page);
    const copy_piece piece{begin() + 5 * page, to.data(), page};
    EXPECT_EQ(copy_pieces({&piece, 1}, begin(), end()), 0u);
  }).join();
}

#if !defined(MILLRACE_NO_SIGBUS_GUARD)

volatile std::sig_atomic_t passed_on = 0;

void end_with_three(int, ::siginfo_t* info, void*) {
  ::_exit(info->si_code > 0 ? 3 : 4);
}
void count(int) {
  passed_on = passed_on + 1;
}

TEST_F(SigbusGuard, WhatIsNotItsOwnGoesToTheHandlerBefore) {
  EXPECT_EQ(test::in_child([&] {
              (void)detail::install_sigbus_guard();
              struct ::sigaction before {};
              before.sa_sigaction = end_with_three;
              before.sa_flags = SA_SIGINFO;
              detail::previous_sigbus() = before;
              std::byte to[1];
              const copy_piece piece{begin() + 5 * page, to, 1};
              if (copy_pieces({&piece, 1}, begin(), end()) != 0) return 1;
              // The piece is not in this map.
              if (copy_pieces({&piece, 1}, begin(), begin() + page) != 0) return 2;
              return 5;
            }),
            3);
}

TEST_F(SigbusGuard, WithoutAHandlerBeforeTheProcessEndsAsItWould) {
  const int result = test::in_child([&] {
    std::byte to[1];
    const copy_piece piece{begin() + 5 * page, to, 1};
    if (copy_pieces({&piece, 1}, begin(), end()) != 0) return 1;
    const volatile std::byte* lost = begin() + 5 * page;
    return *lost == std::byte{} ? 5 : 6;
  });
  EXPECT_EQ(result, 1000 + SIGBUS);
  EXPECT_EQ(test::in_child([&] {
              (void)detail::install_sigbus_guard();
              (void)::kill(::getpid(), SIGBUS);
              return 5;
            }),
            1000 + SIGBUS);
}

TEST_F(SigbusGuard, ASentSignalIsIgnoredWhereItWas) {
  EXPECT_EQ(test::in_child([&] {
              (void)detail::install_sigbus_guard();
              struct ::sigaction before {};
              before.sa_handler = SIG_IGN;
              detail::previous_sigbus() = before;
              (void)::kill(::getpid(), SIGBUS);
              if (detail::sigbus_guard_displaced()) return 1;
              std::byte to[1];
              const copy_piece piece{begin() + 5 * page, to, 1};
              return copy_pieces({&piece, 1}, begin(), end()) == 0 ? 0 : 2;
            }),
            0);
}

TEST_F(SigbusGuard, SaysThatAnotherHandlerWasSet) {
  EXPECT_EQ(test::in_child([&] {
              if (detail::sigbus_guard_displaced()) return 1;
              struct ::sigaction other {};
              other.sa_handler = count;
              (void)::sigaction(SIGBUS, &other, nullptr);
              if (!detail::sigbus_guard_displaced()) return 2;
              const reader_report report = mmap_reader({}).report();
              return report.grants.at(0).granted == "no" ? 0 : 3;
            }),
            0);
}

struct ::sigaction restored {};

/// Acts like Python's faulthandler: restores the previous handler and raises the signal again.
void restore_and_raise(int signal) {
  passed_on = passed_on + 1;
  (void)::sigaction(signal, &restored, nullptr);
  (void)::raise(signal);
}
void install_restoring_handler() {
  struct ::sigaction other {};
  other.sa_handler = restore_and_raise;
  other.sa_flags = SA_NODEFER;
  (void)::sigaction(SIGBUS, &other, &restored);
}

TEST_F(SigbusGuard, SurvivesAHandlerThatRestoresItAndRaisesAgain) {
  EXPECT_EQ(test::in_child([&] {
              (void)detail::install_sigbus_guard();
              std::byte to[1];
              const copy_piece piece{begin() + 5 * page, to, 1};
              for (int i = 1; i <= 2; ++i) {
                install_restoring_handler();
                if (copy_pieces({&piece, 1}, begin(), end()) != 0) return 1;
                if (passed_on != i || detail::sigbus_guard_displaced()) return 2;
              }
              return copy_pieces({&piece, 1}, begin(), end()) == 0 ? 0 : 3;
            }),
            0);
}

// Outside a guarded copy, access to a lost page must end the process, even if another handler
// restores the guard and raises the signal again.
TEST_F(SigbusGuard, ARaisedSignalDoesNotHideAnAccessOfSomebodyElse) {
  EXPECT_EQ(test::in_child([&] {
              (void)detail::install_sigbus_guard();
              install_restoring_handler();
              const volatile std::byte* lost = begin() + 5 * page;
              return *lost == std::byte{} ? 5 : 6;
            }),
            1000 + SIGBUS);
}

// Another thread raises the signal while this thread copies. The copy must continue, and the signal
// must not be lost.
TEST_F(SigbusGuard, ASignalRaisedDuringACopyIsPassedOnAfterIt) {
  EXPECT_EQ(test::in_child([&] {
              (void)detail::install_sigbus_guard();
              struct ::sigaction before {};
              before.sa_handler = count;
              detail::previous_sigbus() = before;
              std::vector<std::byte> to(page);
              // This copy is so long that the signal nearly always arrives during it.
              const std::vector<copy_piece> pieces(20000, {begin(), to.data(), page});
              for (int round = 1; round <= 20; ++round) {
                const ::pthread_t copies = ::pthread_self();
                std::thread raises([&] { (void)::pthread_kill(copies, SIGBUS); });
                if (copy_pieces(pieces, begin(), end()) != pieces.size()) return 1;
                raises.join();
                if (passed_on != round) return 2;
              }
              return 0;
            }),
            0);
}

TEST_F(SigbusGuard, ASentSignalIsPassedOn) {
  EXPECT_EQ(test::in_child([&] {
              (void)detail::install_sigbus_guard();
              struct ::sigaction before {};
              before.sa_handler = count;
              detail::previous_sigbus() = before;
              (void)::kill(::getpid(), SIGBUS);
              (void)::kill(::getpid(), SIGBUS);
              return passed_on == 2 ? 0 : 1;
            }),
            0);
}

#endif

}  // namespace
}  // namespace millrace::loader
