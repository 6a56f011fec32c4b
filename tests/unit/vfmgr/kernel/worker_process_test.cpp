// SPDX-License-Identifier: Apache-2.0
// Real child processes: a shell stands for vfmgrd.
#include "vfmgr/kernel/worker_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/no_descriptors_left.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

PciAddress const served{0, 1, 0, 0};

Deadline in(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
}

Result<WorkerProcess> shell(std::string const& script, FileDescriptor lock = {}) {
    return spawn_worker("/bin/sh", {"sh", "-c", script}, std::move(lock));
}

// What guards VFs starts even when clients have taken every descriptor.
TEST(StartWorker, GoesOnWhereDescriptorsAreScarce) {
    test::TemporaryFolder const folder;
    FileDescriptor const program(::open("/bin/true", O_PATH | O_CLOEXEC));
    SpareDescriptors spare(worker_start_descriptors);
    SpareDescriptors without(0);
    std::vector<WorkerProcess> kept;  // descriptors that they freed would lie below the limit
    for (int again = 0; again < 3; ++again) {
        test::NoDescriptorsLeft const none;
        EXPECT_FALSE(start_worker({program.get(), folder.file("locks"), without}, served));
        auto started = start_worker({program.get(), folder.file("locks"), spare}, served);
        ASSERT_TRUE(started) << detail_with_causes(started.error());
        EXPECT_EQ(started->end(), "exit status 0");
        kept.push_back(std::move(*started));
    }
}

TEST(SpawnWorker, ItsSocketIsDescriptor3AndEndsWithIt) {
    Worker worker(
        shell(R"(read -r line <&3; echo '{"id":1,"remarks":["seen"]}' >&3; exit 5)").value());
    auto const answer = worker.ask({}, in(10s));
    ASSERT_TRUE(answer) << answer.error().detail;
    EXPECT_EQ(answer->remarks, std::vector<std::string>{"seen"});
    EXPECT_TRUE(worker.await_end(in(10s)));
    auto const after = worker.ask({}, in(10s));
    ASSERT_FALSE(after);
    EXPECT_NE(after.error().detail.find("has ended: exit status 5"), std::string::npos);
}

TEST(SpawnWorker, GetsNothingElseOfTheDaemons) {
    auto process = shell("ls /proc/self/fd | tr '\\n' ' ' >&3; echo >&3");
    ASSERT_TRUE(process);
    std::array<char, 64> text{};
    std::string fds;
    for (ssize_t got = 0; (got = ::read(process->socket.get(), text.data(), text.size())) > 0;)
        fds.append(text.data(), static_cast<std::size_t>(got));
    EXPECT_EQ(fds, "0 1 2 3 4 \n") << "4 is ls's own";
    EXPECT_EQ(process->end(), "exit status 0");
}

TEST(SpawnWorker, IsKilled) {
    Worker worker(shell("read -r line <&3; read -r line <&3").value());
    EXPECT_EQ(worker.ask({}, in(50ms)).error().problem, Problem::timed_out);
    worker.kill();
    EXPECT_TRUE(worker.await_end(in(10s)));
    EXPECT_NE(worker.ask({}, in(1s)).error().detail.find("signal 9"), std::string::npos);
}

TEST(SpawnWorker, AProgramThatIsNotThereIsAnError) {
    auto const none = spawn_worker("/no/such/program", {"x"}, {});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().causes.at(0).code, "ENOENT");
}

TEST(LockPf, IsHeldByTheWorkerAsLongAsItLives) {
    test::TemporaryFolder const folder;
    auto lock = lock_subject(folder.path(), served);
    ASSERT_TRUE(lock);
    auto process = shell("read -r line <&3", std::move(*lock));
    ASSERT_TRUE(process);
    auto const held = lock_subject(folder.path(), served);
    ASSERT_FALSE(held);
    EXPECT_EQ(held.error().problem, Problem::pf_stuck);
    EXPECT_NE(held.error().detail.find("pid " + std::to_string(process->pid)), std::string::npos)
        << held.error().detail;
    EXPECT_TRUE(lock_subject(folder.path(), PciAddress{0, 2, 0, 0})) << "another PF";
    EXPECT_TRUE(lock_subject(folder.path(), HostNetwork{})) << "the host's network";
    auto const began = std::chrono::steady_clock::now();
    auto const threads = entries("/proc/self/task").size();
    await_predecessor(folder.path(), served, in(50ms));
    EXPECT_GE(std::chrono::steady_clock::now() - began, 50ms) << "its end is waited for";
    EXPECT_EQ(entries("/proc/self/task").size(), threads) << "a thread left behind takes the lock";
    process->kill();
    await_predecessor(folder.path(), served, in(10s));
    // The kernel closes its descriptors before its end is visible.
    EXPECT_TRUE(lock_subject(folder.path(), served));
    EXPECT_EQ(process->end(), "signal 9");
}

TEST(WorkerWord, NamesAPfOrTheHost) {
    for (KernelSubject const subject : {KernelSubject(HostNetwork{}), KernelSubject(served)})
        EXPECT_EQ(worker_subject(worker_word(subject)), subject);
    EXPECT_EQ(worker_word(HostNetwork{}), "host");
    EXPECT_FALSE(worker_subject("bond0"));
}

}  // namespace
}  // namespace vfmgr
