// SPDX-License-Identifier: Apache-2.0
#include "simulated_run.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/loader_report.hpp>

namespace millrace::inspect {

namespace {

rank_outcome run_rank(const simulated_run& what, std::int64_t rank,
                      const loader::simulate_options& steps) {
  loader::loader_options options = what.options(rank);
  options.held = 1;  // `simulate_rank` holds one batch
  rank_outcome outcome;
  // The loader has this number of slots. (A slot is the memory of one batch.) For a very short run,
  // it has fewer slots, but `simulate_rank` rejects such a run.
  outcome.slots = options.look_ahead + options.held + options.threads;
  loader::batch_loader loader(what.run().order, options);
  outcome.times = loader::simulate_rank(loader, outcome.slots, steps);
  outcome.memory = loader::memory_of_process();
  const std::string name = loader.observe().readers.at(0).granted;
  std::strncpy(outcome.reader, name.c_str(), sizeof outcome.reader - 1);
  return outcome;
}

std::vector<rank_outcome> run_threads(const simulated_run& what) {
  std::vector<rank_outcome> outcomes(static_cast<std::size_t>(what.ranks));
  std::vector<std::exception_ptr> failures(outcomes.size());
  std::barrier together(static_cast<std::ptrdiff_t>(what.ranks));
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < outcomes.size(); ++r) {
      threads.emplace_back([&, r] {
        loader::simulate_options steps = what.steps;
        if (what.wait_for_each_other) steps.after_step = [&] { together.arrive_and_wait(); };
        try {
          outcomes[r] = run_rank(what, static_cast<std::int64_t>(r), steps);
        } catch (...) {
          failures[r] = std::current_exception();
        }
        together.arrive_and_drop();  // so that no other rank waits for the failed one
      });
    }
  }
  for (const std::exception_ptr& each : failures) {
    if (each) std::rethrow_exception(each);
  }
  return outcomes;
}

/// A child process, and the read end of the pipe for its outcome.
struct child {
  pid_t pid;
  io::unique_fd from;
};

static_assert(std::is_trivially_copyable_v<rank_outcome>);

/// Runs a rank. Writes its result to `to`: one byte for the kind of result, then the outcome or an
/// error message. Never returns.
[[noreturn]] void run_child(const simulated_run& what, std::int64_t rank, int to) {
  std::string text(1, 'E');
  try {
    const rank_outcome outcome = run_rank(what, rank, what.steps);
    text.assign(1, 'O');
    text.append(reinterpret_cast<const char*>(&outcome), sizeof outcome);
  } catch (const std::exception& e) {
    text += e.what();
  }
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t size = ::write(to, text.data() + at, text.size() - at);
    if (size < 0 && errno != EINTR) break;
    if (size > 0) at += static_cast<std::size_t>(size);
  }
  ::_exit(0);  // must not flush or remove anything that belongs to the parent process
}

child start_child(const simulated_run& what, std::int64_t rank) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw io_error("(pipe)", "pipe2", errno);
  io::unique_fd from(ends[0]);
  const io::unique_fd to(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) throw io_error("(process)", "fork", errno);
  if (pid == 0) run_child(what, rank, to.get());
  return {pid, std::move(from)};
}

std::string read_all(const io::unique_fd& from) {
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t size = ::read(from.get(), part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(part, static_cast<std::size_t>(size));
  }
}

std::vector<rank_outcome> run_processes(const simulated_run& what) {
  std::vector<child> children;
  std::string failure;
  for (std::int64_t r = 0; r < what.ranks; ++r) children.push_back(start_child(what, r));
  std::vector<rank_outcome> outcomes(children.size());
  for (std::size_t r = 0; r < children.size(); ++r) {
    const std::string text = read_all(children[r].from);
    (void)::waitpid(children[r].pid, nullptr, 0);
    if (text.size() == 1 + sizeof(rank_outcome) && text[0] == 'O') {
      std::memcpy(&outcomes[r], text.data() + 1, sizeof(rank_outcome));
    } else if (failure.empty()) {
      failure = text.empty() ? "the process of rank " + std::to_string(r) +
                                   " died before it reported its result"
                             : text.substr(1);
    }
  }
  if (!failure.empty()) throw error(failure);
  return outcomes;
}

}  // namespace

std::vector<rank_outcome> run_ranks(const simulated_run& what) {
  return what.as == ranks_as::threads ? run_threads(what) : run_processes(what);
}

}  // namespace millrace::inspect
