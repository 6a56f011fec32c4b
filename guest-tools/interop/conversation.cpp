// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/interop/conversation.hpp"

#include "guest-tools/interop/lines.hpp"
#include "guest-tools/interop/perftest.hpp"
#include "guest-tools/verify/host_stream.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
// ibv_rc_pingpong closes its connection before its test, so only silence shows that the test has
// ended. The test may start late; after that a message is delayed by seven retries at most.
constexpr std::chrono::seconds silence_before{5}, silence_after{2};
constexpr std::chrono::milliseconds poll_interval{250};
constexpr std::uint32_t pingpong_bytes_max = 1 << 20;
constexpr std::uint32_t pingpong_depth = 64;

}  // namespace

Conversation::Conversation(FileDescriptor socket, Terms terms, Room room, BeginTest begin_test,
                           OnEnd on_end)
    : room_(std::move(room)),
      client_(std::move(socket)),
      terms_(std::move(terms)),
      begin_test_(std::move(begin_test)),
      on_end_(std::move(on_end)) {
    thread_ = std::thread([this] { run(); });
}

Conversation::~Conversation() {
    stop();
    thread_.join();
}

void Conversation::stop() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    client_.cut();
}

bool Conversation::wait_stopped(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, time, [&] { return stopping_; });
}

// A client that has closed its connection is left to TCP; all others get a reset.
void Conversation::run() {
    if (!serve()) client_.end_hard();
    ended_ = true;
    on_end_(testing_);
}

Result<void> Conversation::begin_test() {
    VFMGR_CHECK(begin_test_());
    testing_ = true;
    return {};
}

// perftest begins with its version in 16 bytes, ibv_rc_pingpong with a line of 52.
Result<void> Conversation::serve() {
    auto const handshake = Steady::now() + handshake_time;
    VFMGR_TRY(auto begun, client_.read(perftest_version_bytes, handshake));
    if (is_perftest_version(begun)) return serve_perftest(std::move(begun), handshake);
    return serve_pingpong(std::move(begun), handshake);
}

Result<void> Conversation::serve_pingpong(std::string begun, Deadline handshake) {
    VFMGR_TRY(auto const rest, client_.read(pingpong_line_bytes - begun.size(), handshake));
    auto const peer = parse_pingpong_line(begun + rest);
    if (!peer)
        return fail(Problem::invalid_request,
                    "the first message is neither perftest's nor ibv_rc_pingpong's",
                    "use perftest or ibv_rc_pingpong");
    VFMGR_CHECK(begin_test());
    // The stream echoes sends, whichever test the window is for.
    VFMGR_TRY(auto const share,
              room_.shares.take(terms_.permit.attachment, taken_by_pair(InteropTest::send_echo)));
    VFMGR_TRY(
        auto const stream,
        verify::HostStream::open(
            terms_.permit,
            {StreamKind::send_echo, pingpong_bytes_max, pingpong_depth, {*peer}, std::nullopt},
            stream_limits(terms_)));
    VFMGR_CHECK(client_.write(make_pingpong_line(stream->offer().pairs.front()), handshake));
    VFMGR_CHECK(client_.read(sizeof "done", handshake));
    // No event is raised when a RoCE peer goes away: the stalled message count is the only sign.
    std::uint64_t before = 0;
    auto silent_since = Steady::now();
    while (!wait_stopped(poll_interval) && Steady::now() < terms_.until) {
        auto const now = stream->messages();
        if (now != before) silent_since = Steady::now();
        if (Steady::now() - silent_since >= (now == 0 ? silence_before : silence_after)) break;
        before = now;
    }
    return {};
}

Result<void> Conversation::serve_perftest(std::string begun, Deadline handshake) {
    Perftest server(client_, terms_, room_.shares, [this] { return begin_test(); });
    return server.serve(std::move(begun), handshake);
}

}  // namespace vfmgr::interop
