// SPDX-License-Identifier: Apache-2.0
#include "mpi/rank_group.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/command/text.hpp>

#include "run/pipeline.hpp"

namespace millrace::preprocess {
namespace {

constexpr int message_tag = 1;
constexpr std::size_t most_at_once = std::size_t{1} << 30;  // MPI counts are of type int

// How a step ended on a rank. More serious outcomes have larger values.
enum severity : int { fine = 0, was_stopped = 1, misused = 2, failed = 3 };

int exit_code_of(int severity) {
  constexpr std::array codes = {command::exit_done, exit_stopped, command::exit_misuse,
                                command::exit_failed};
  return codes.at(static_cast<std::size_t>(severity));
}

// Waits until a request is complete. Sleeps between checks, because MPI's own wait functions keep a
// processor busy.
void wait_for(MPI_Request request) {
  for (int done = 0;;) {
    (void)MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

template <class T>
T reduced(const T& mine, MPI_Datatype type, MPI_Op operation) {
  T result{};
  MPI_Request request = MPI_REQUEST_NULL;
  (void)MPI_Iallreduce(&mine, &result, 1, type, operation, MPI_COMM_WORLD, &request);
  wait_for(request);
  return result;
}

std::array<std::uint64_t, 3> numbers_of(const dataset_extent& extent) {
  return {extent.sequences, extent.documents, extent.bin_bytes};
}
dataset_extent extent_of_numbers(const std::array<std::uint64_t, 3>& numbers) {
  return {.sequences = numbers[0], .documents = numbers[1], .bin_bytes = numbers[2]};
}

}  // namespace

rank_group::rank_group(std::string program, int* argc, char*** argv)
    : program_(std::move(program)) {
  int granted = 0;
  (void)MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &granted);
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

rank_group::~rank_group() {
  (void)MPI_Finalize();
}

void rank_group::abort(int status) const {
  (void)MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

rank_group::neighbor_count rank_group::count_neighbors() const {
  MPI_Comm machine = MPI_COMM_NULL;
  (void)MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  int count = 1;
  (void)MPI_Comm_size(machine, &count);
  ::cpu_set_t mine;
  CPU_ZERO(&mine);
  // If this call fails, the set stays empty. If it fails on all ranks, all sets are equal, so the
  // ranks count as running on the same cores.
  (void)::sched_getaffinity(0, sizeof(mine), &mine);
  std::vector<::cpu_set_t> all(static_cast<std::size_t>(count));
  (void)MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, machine);
  (void)MPI_Comm_free(&machine);
  const auto same =
      std::ranges::count_if(all, [&](const auto& set) { return CPU_EQUAL(&set, &mine) != 0; });
  return {.on_machine = count, .on_same_cores = static_cast<int>(same)};
}

void rank_group::together(const std::function<void()>& step) {
  try {
    step();
  } catch (const stopped& e) {
    return settle(was_stopped, e.what());
  } catch (const command::usage_error& e) {
    return settle(misused, e.what());
  } catch (const std::bad_alloc&) {
    return settle(failed, "out of memory");
  } catch (const std::exception& e) {
    return settle(failed, e.what());
  }
  settle(fine, {});
}

void rank_group::settle(int severity, const std::string& reason) {
  const int worst = reduced(severity, MPI_INT, MPI_MAX);
  if (worst == fine) return;
  // A rank whose outcome is less serious than `worst` has nothing to report. For example, it
  // stopped only because another rank failed.
  std::string mine = severity == worst ? command::one_line(reason) : std::string();
  mine.resize(std::min<std::size_t>(mine.size(), 4096));
  const auto length = static_cast<std::uint64_t>(mine.size());
  const auto lengths = gather(std::span(&length, 1));
  const std::string all = [&] {
    const auto bytes = gather_bytes(std::as_bytes(std::span(mine)));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }();
  if (is_first()) tell_first(lengths, all);
  throw job_ended(exit_code_of(worst));
}

// Prints only the reason of the first rank that gave a reason. Other ranks often fail for the same
// reason, such as a missing file.
void rank_group::tell_first(std::span<const std::uint64_t> lengths,
                            std::string_view reasons) const {
  const auto first = std::ranges::find_if(lengths, [](auto length) { return length != 0; });
  if (first == lengths.end()) return;
  const auto others = std::count_if(first + 1, lengths.end(), [](auto n) { return n != 0; });
  std::string words;
  if (first != lengths.begin()) words += fmt::format("rank {}: ", first - lengths.begin());
  words += reasons.substr(0, *first);
  if (others != 0 && others + 1 != size_) {
    words += fmt::format(" (and {} also failed)", command::counted(others, "other rank"));
  }
  command::tell(fmt::format("{}: {}\n", program_, words));
}

void rank_group::share_bytes(std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), most_at_once));
    MPI_Request request = MPI_REQUEST_NULL;
    (void)MPI_Ibcast(part.data(), static_cast<int>(part.size()), MPI_BYTE, 0, MPI_COMM_WORLD,
                     &request);
    wait_for(request);
    bytes = bytes.subspan(part.size());
  }
}

// Uses single messages instead of MPI_Gatherv, because with MPI_Gatherv, the total size over all
// ranks would have to fit in an int.
std::vector<std::byte> rank_group::gather_bytes(std::span<const std::byte> mine) const {
  std::vector<std::byte> all;
  const auto transfer = [](auto start) {
    MPI_Request request = MPI_REQUEST_NULL;
    start(&request);
    wait_for(request);
  };
  if (!is_first()) {
    const std::uint64_t size = mine.size();
    transfer([&](MPI_Request* request) {
      (void)MPI_Isend(&size, sizeof(size), MPI_BYTE, 0, message_tag + 1, MPI_COMM_WORLD, request);
    });
    while (!mine.empty()) {
      const auto part = mine.first(std::min(mine.size(), most_at_once));
      transfer([&](MPI_Request* request) {
        (void)MPI_Isend(part.data(), static_cast<int>(part.size()), MPI_BYTE, 0, message_tag + 1,
                        MPI_COMM_WORLD, request);
      });
      mine = mine.subspan(part.size());
    }
    return all;
  }
  all.assign(mine.begin(), mine.end());
  for (int from = 1; from < size_; ++from) {
    std::uint64_t size = 0;
    transfer([&](MPI_Request* request) {
      (void)MPI_Irecv(&size, sizeof(size), MPI_BYTE, from, message_tag + 1, MPI_COMM_WORLD,
                      request);
    });
    std::size_t at = all.size();
    all.resize(at + size);
    while (at < all.size()) {
      const std::size_t part = std::min(all.size() - at, most_at_once);
      transfer([&](MPI_Request* request) {
        (void)MPI_Irecv(all.data() + at, static_cast<int>(part), MPI_BYTE, from, message_tag + 1,
                        MPI_COMM_WORLD, request);
      });
      at += part;
    }
  }
  return all;
}

dataset_extent rank_group::before(const dataset_extent& mine) const {
  const auto numbers = numbers_of(mine);
  std::array<std::uint64_t, 3> sums{};
  MPI_Request request = MPI_REQUEST_NULL;
  (void)MPI_Iexscan(numbers.data(), sums.data(), 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD,
                    &request);
  wait_for(request);
  if (is_first()) sums = {};  // MPI leaves the result undefined on rank 0
  return extent_of_numbers(sums);
}

dataset_extent rank_group::total(const dataset_extent& mine) const {
  const auto numbers = numbers_of(mine);
  std::array<std::uint64_t, 3> sums{};
  MPI_Request request = MPI_REQUEST_NULL;
  (void)MPI_Iallreduce(numbers.data(), sums.data(), 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD,
                       &request);
  wait_for(request);
  return extent_of_numbers(sums);
}

double rank_group::total(double mine) const {
  return reduced(mine, MPI_DOUBLE, MPI_SUM);
}

std::uint64_t rank_group::most(std::uint64_t mine) const {
  return reduced(mine, MPI_UINT64_T, MPI_MAX);
}

void rank_group::send_bytes(int to, std::span<const std::byte> bytes) const {
  (void)MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, message_tag,
                 MPI_COMM_WORLD);
}

bool rank_group::receive_bytes(int from, std::span<std::byte> bytes, int* sender) const {
  int there = 0;
  MPI_Status status;
  (void)MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, message_tag, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return false;
  if (sender != nullptr) *sender = status.MPI_SOURCE;
  (void)MPI_Recv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, status.MPI_SOURCE,
                 message_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return true;
}

}  // namespace millrace::preprocess
