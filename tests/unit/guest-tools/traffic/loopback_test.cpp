// SPDX-License-Identifier: Apache-2.0
// Both ends over the loopback device, over UDP: there is no RDMA device where unit tests run. Lost,
// duplicate and reordered packets come on purpose from a sender of the test's own.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "api/types/json.hpp"
#include "guest-tools/traffic/control.hpp"
#include "guest-tools/traffic/receiver.hpp"
#include "guest-tools/traffic/sender.hpp"
#include "vfmgr/proof/interop/tcp_stream.hpp"

namespace vfmgr::stream {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
auto const loopback = IpAddress::parse("127.0.0.1").value();

Deadline soon() {
    return Steady::now() + 20s;
}

void ignore(Opening const&) {}

std::string text(auto const& value) {
    return to_json_text(nlohmann::json(value));
}

// Runs receive() in a thread of its own, until it ends by itself or is stopped.
class Receiver {
  public:
    explicit Receiver(ReceiveOptions options = {}) : options_(std::move(options)) {
        options_.local = loopback;
        options_.port = 0;
        if (!options_.time) options_.time = 60s;
        result_ = std::async(std::launch::async, [this] {
            ReceiveEvents events;
            events.ready = [this](std::uint16_t at) { ready_.set_value(at); };
            events.begun = [this](Opening const& opening, IpAddress const&, RingPlace const& ring) {
                begun = opening;
                EXPECT_EQ(ring, RingPlace{});
            };
            events.refused = [this](Error const& error) { refused.push_back(error); };
            events.second = [this](Interval const& one) { seconds.push_back(one); };
            return receive(options_, events, stop.get());
        });
        port = ready_.get_future().get();
    }
    ~Receiver() {
        raise_event(stop);
        if (result_.valid()) result_.wait();
    }
    Result<Summary> result() { return result_.get(); }

    FileDescriptor const stop = make_event().value();
    std::uint16_t port = 0;
    // Valid to read after result().
    std::optional<Opening> begun;
    std::vector<Error> refused;
    std::vector<Interval> seconds;

  private:
    ReceiveOptions options_;
    std::promise<std::uint16_t> ready_;
    std::future<Result<Summary>> result_;
};

SendOptions spec_for(Receiver const& receiver) {
    SendOptions options;
    options.to = loopback;
    options.port = receiver.port;
    options.packet_bytes = 256;
    options.packets = 1000;
    options.packets_per_second = 20'000;
    return options;
}

std::unique_ptr<Sender> open_sender(std::uint32_t packet_bytes, std::uint64_t run) {
    SendOptions const options{.to = loopback, .packet_bytes = packet_bytes, .chunk = 1};
    return Sender::open(options, loopback, run).value();
}

// A sender that sends the given packets.
struct OwnSender {
    Control control;
    std::unique_ptr<Sender> sender;
    Acceptance receiver;
    Ending ending{};

    static OwnSender begin(Receiver const& receiver) {
        auto control = connect_to({loopback, receiver.port}, soon(), -1).value();
        Opening opening;
        opening.run = "00000000000004d2";
        opening.packet_bytes = 128;
        auto const accepted =
            read_acceptance(control.ask(text(opening), soon(), -1).value(), Over::udp).value();
        auto sender = open_sender(128, 1234);
        EXPECT_TRUE(sender->aim(accepted));
        return {std::move(control), std::move(sender), accepted};
    }
    void send(std::uint64_t from, std::uint64_t to) {
        for (; from < to; ++from) EXPECT_TRUE(sender->send(from, 1));
    }
    Summary end(std::uint64_t packets) {
        ending.packets = packets;
        return read_summary(control.ask(text(ending), soon(), -1).value()).value();
    }
};

TEST(StreamLoopback, LosesNothingAndBothEndsSayTheSame) {
    Receiver receiver;
    auto const sent = send(spec_for(receiver), ignore, -1);
    auto const received = receiver.result();
    ASSERT_TRUE(sent) << sent.error().detail;
    ASSERT_TRUE(received) << received.error().detail;
    EXPECT_EQ(*sent, *received);
    EXPECT_EQ(sent->end, End::sent);
    EXPECT_TRUE(sent->nothing_lost());
    EXPECT_EQ(sent->received, 1000U);
    EXPECT_EQ(sent->sent->packets, 1000U);
    EXPECT_EQ(sent->sent->lateness.chunks, 63U);
    EXPECT_EQ(sent->bytes(), 256'000U);
    EXPECT_EQ(sent->socket_lost, 0U);
    // The last chunk is due 992 packets after the first: never faster than the rate.
    EXPECT_GE(sent->sent->microseconds, 49'600U);
    EXPECT_EQ(receiver.begun->packet_bytes, 256U);
    EXPECT_TRUE(receiver.refused.empty());
}

TEST(StreamLoopback, ASecondChunkWaitsForItsTime) {
    Receiver receiver;
    auto slow = spec_for(receiver);
    slow.packets = 32;
    slow.packets_per_second = 80;  // a chunk each 200 ms: no load makes an early one look right
    auto const sent = send(slow, ignore, -1);
    ASSERT_TRUE(sent) << sent.error().detail;
    EXPECT_EQ(sent->sent->lateness.chunks, 2U);
    EXPECT_GE(sent->sent->microseconds, 200'000U);
}

TEST(StreamLoopback, InjectedLossIsReportedExactly) {
    Receiver receiver;
    auto sender = OwnSender::begin(receiver);
    sender.send(1, 20);  // without the first
    sender.send(21, 22);
    sender.send(20, 21);  // swapped
    sender.send(22, 100);
    sender.send(30, 32);    // duplicates
    sender.send(105, 997);  // without 100 to 104, and without the last three
    auto const told = sender.end(1000);
    auto const counted = receiver.result().value();
    EXPECT_EQ(told, counted);
    EXPECT_EQ(counted.lost, 1U + 5 + 3);
    EXPECT_EQ(counted.missing, 1U + 5);
    EXPECT_EQ(counted.received, 1000U - 9);
    EXPECT_EQ(counted.out_of_order, 1U);
    EXPECT_EQ(counted.duplicates, 2U);
    EXPECT_EQ(counted.foreign, 0U);
    EXPECT_EQ(counted.too_late, 0U);
    EXPECT_FALSE(counted.nothing_lost());
}

// The end message goes by TCP, and may overtake packets sent before it.
TEST(StreamLoopback, WhatIsOnItsWayWhenTheSenderEndsIsAwaited) {
    Receiver receiver;
    auto sender = OwnSender::begin(receiver);
    sender.ending.packets = 10;
    ASSERT_TRUE(sender.control.send(text(sender.ending)));
    std::array const answer{sender.control.fd()};
    EXPECT_EQ(await_readable(answer, Steady::now() + 20ms), Readiness::deadline_passed);
    sender.send(0, 10);
    auto const counted = read_summary(sender.control.line(soon(), -1).value()).value();
    EXPECT_TRUE(counted.nothing_lost());
    EXPECT_EQ(counted.received, 10U);
}

TEST(StreamLoopback, WhatIsNotOfTheRunIsForeign) {
    Receiver receiver;
    auto sender = OwnSender::begin(receiver);
    for (auto const& [bytes, run] : {std::pair{128U, 1235U}, {127U, 1234U}, {900U, 1234U}}) {
        auto const stranger = open_sender(bytes, run);
        ASSERT_TRUE(stranger->aim(sender.receiver));
        ASSERT_TRUE(stranger->send(2, 1));
    }
    sender.send(0, 2);
    auto const counted = sender.end(3);
    EXPECT_EQ(counted.foreign, 3U);
    EXPECT_EQ(counted.received, 2U);
    EXPECT_EQ(counted.lost, 1U);
}

TEST(StreamLoopback, ASenderThatDiesLeavesWhatCame) {
    Receiver receiver;
    {
        auto sender = OwnSender::begin(receiver);
        sender.send(0, 10);
        sender.send(12, 20);
    }
    auto const counted = receiver.result().value();
    EXPECT_EQ(counted.end, End::sender_gone);
    EXPECT_EQ(counted.sent, std::nullopt);
    EXPECT_EQ(counted.lost, std::nullopt);
    EXPECT_EQ(counted.missing, 2U);
    EXPECT_EQ(counted.received, 18U);
    EXPECT_FALSE(counted.nothing_lost());
}

TEST(StreamLoopback, AReceiverThatEndsTellsTheSenderWhatCame) {
    ReceiveOptions options;
    options.time = 1500ms;
    Receiver receiver(options);
    auto endless = spec_for(receiver);
    endless.packets.reset();
    endless.time = 60s;
    auto const sent = send(endless, ignore, -1);
    auto const received = receiver.result().value();
    ASSERT_TRUE(sent) << sent.error().detail;
    EXPECT_EQ(*sent, received);
    EXPECT_EQ(sent->end, End::time_over);
    EXPECT_EQ(sent->lost, std::nullopt);
    EXPECT_GT(sent->received, 0U);
    ASSERT_EQ(receiver.seconds.size(), 2U);  // and the remainder
    EXPECT_GT(receiver.seconds[0].packets, 0U);
    EXPECT_EQ(receiver.seconds[0].packets + receiver.seconds[1].packets, received.received);
    // Not twice the rate: no tighter bound, as the receiver's clock begins after the sender's.
    EXPECT_LE(receiver.seconds[0].packets, receiver.seconds[0].until_us / 50 + 10'000);
    EXPECT_EQ(receiver.seconds[0].bytes, receiver.seconds[0].packets * 256);
}

TEST(StreamLoopback, AStoppedSenderIsCountedExactly) {
    Receiver receiver;
    auto endless = spec_for(receiver);
    endless.packets.reset();
    endless.time = 60s;
    auto const stop = make_event().value();
    auto const sent = send(endless, [&](Opening const&) { raise_event(stop); }, stop.get());
    ASSERT_TRUE(sent) << sent.error().detail;
    EXPECT_EQ(sent->end, End::sent);
    EXPECT_TRUE(sent->nothing_lost());
    EXPECT_LT(sent->received, 20'000U);
}

TEST(StreamLoopback, AStoppedReceiverThatWaitsSaysSo) {
    Receiver receiver;
    raise_event(receiver.stop);
    EXPECT_EQ(receiver.result().error(), stopped());
}

TEST(StreamLoopback, NoSenderInTime) {
    ReceiveOptions options;
    options.time = 10ms;
    Receiver receiver(options);
    auto const none = receiver.result();
    EXPECT_EQ(none.error().problem, Problem::timed_out);
    EXPECT_NE(none.error().remedy.find("vf-guest stream send --to 127.0.0.1"), std::string::npos);
}

TEST(StreamLoopback, OneOfAnotherVersionIsRefusedAndTheNextIsWaitedFor) {
    Receiver receiver;
    {
        auto control = connect_to({loopback, receiver.port}, soon(), -1).value();
        ASSERT_TRUE(control.send(R"({"version":2,"lanes":4})"));
        auto const refused = read_acceptance(control.line(soon(), -1).value(), Over::udp);
        EXPECT_EQ(refused.error().problem, Problem::unsupported);
        auto scanner = connect_to({loopback, receiver.port}, soon(), -1).value();
        ASSERT_TRUE(scanner.send("GET / HTTP/1.1"));
        ASSERT_TRUE(scanner.line(soon(), -1));
        auto flood = connect_to({loopback, receiver.port}, soon(), -1).value();
        ASSERT_TRUE(flood.send(std::string(2 * line_bytes_max, 'a')));
        ASSERT_TRUE(flood.line(soon(), -1));
    }
    auto const sent = send(spec_for(receiver), ignore, -1);
    ASSERT_TRUE(sent) << sent.error().detail;
    EXPECT_TRUE(sent->nothing_lost());
    ASSERT_TRUE(receiver.result());
    ASSERT_EQ(receiver.refused.size(), 3U);
    EXPECT_NE(receiver.refused[0].detail.find("has version 2"), std::string::npos);
    EXPECT_EQ(receiver.refused[1].problem, Problem::guest_refused);
    EXPECT_NE(receiver.refused[2].detail.find("4096 bytes"), std::string::npos);
}

TEST(StreamLoopback, AReceiverOfTheOtherKindSaysSoToTheSender) {
    ReceiveOptions options;
    options.over = Over::udp;
    Receiver receiver(options);
    auto control = connect_to({loopback, receiver.port}, soon(), -1).value();
    Opening opening;
    opening.run = "00000000000004d2";
    opening.over = Over::ud;
    opening.packet_bytes = 1024;
    opening.pair = QueuePairEnd{"00000000000000000000ffff7f000001", 17, 5, 1024, 1};
    ASSERT_TRUE(control.send(text(opening)));
    auto const refused = read_acceptance(control.line(soon(), -1).value(), Over::ud);
    EXPECT_EQ(
        refused.error().detail,
        "the receiver refused: the receiver takes packets over udp, but the sender sends over ud");
    EXPECT_EQ(refused.error().remedy, "give both ends the same --over");
}

// Before a sender comes, and not only when one has come.
TEST(StreamLoopback, WhereThereIsNoRdmaAReceiverOverItDoesNotBegin) {
    ReceiveOptions options;
    options.local = IpAddress::parse("192.0.2.1").value();
    options.port = 0;
    options.over = Over::ud;
    EXPECT_EQ(receive(options, {}, -1).error().problem, Problem::unsupported);
}

TEST(StreamLoopback, ARingThatHoldsNoPacketIsToldToTheSender) {
    ReceiveOptions options;
    options.ring.bytes = 255;
    Receiver receiver(options);
    auto const refused = send(spec_for(receiver), ignore, -1);
    EXPECT_EQ(
        refused.error().detail,
        "the receiver refused: the receiver's ring of 255 bytes can't hold a packet of 256 bytes");
}

TEST(StreamLoopback, WhereNobodyListensTheCommandIsNamed) {
    SendOptions options;
    options.to = loopback;
    options.port = 1;
    auto const refused = send(options, ignore, -1);
    EXPECT_EQ(refused.error().detail, "no stream receiver listens on 127.0.0.1 port 1");
    EXPECT_EQ(refused.error().remedy,
              "start one on that machine: vf-guest stream receive --local 127.0.0.1 --port 1");
    options.local = IpAddress::parse("192.0.2.1").value();
    EXPECT_EQ(send(options, ignore, -1).error().detail, "no netdev here has the address 192.0.2.1");
    options.local = IpAddress::parse("::1").value();
    EXPECT_EQ(send(options, ignore, -1).error().problem, Problem::invalid_request);
}

TEST(StreamLoopback, APortThatIsTakenAndAnAddressThatIsNotHereAreNamed) {
    auto const taken = interop::listen_tcp({loopback, 0, {}}).value();
    ReceiveOptions options;
    options.local = loopback;
    options.port = interop::port_of(taken);
    auto const refused = receive(options, {}, -1);
    EXPECT_EQ(refused.error().causes.at(0).code, "EADDRINUSE");
    EXPECT_EQ(refused.error().remedy,
              "stop the program that uses TCP port " + std::to_string(options.port));
    options.local = IpAddress::parse("192.0.2.1").value();
    auto const nowhere = receive(options, {}, -1);
    EXPECT_EQ(nowhere.error().causes.at(0).code, "EADDRNOTAVAIL");
    EXPECT_EQ(nowhere.error().remedy, "name an address that a netdev here has: ip -brief address");
    Opening const short_packets{.run = "0000000000000001", .packet_bytes = 64};
    auto const first = stream::Receiver::open({loopback, 0}, short_packets).value();
    auto const port = first->acceptance().udp_port.value();
    auto const second = stream::Receiver::open({loopback, port}, short_packets);
    EXPECT_EQ(second.error().causes.at(0).code, "EADDRINUSE");
    EXPECT_NE(second.error().remedy.find("ss -ulpn"), std::string::npos);
}

// Too long for the loopback device itself: an MTU of 65536, and IPv6 headers.
TEST(StreamLoopback, PacketsBeyondThePathsMtuAreRefusedWithTheLongest) {
    auto const v6 = IpAddress::parse("::1").value();
    if (!interop::listen_tcp({v6, 0, {}})) GTEST_SKIP() << "there is no IPv6 here";
    EXPECT_TRUE(Sender::open({.to = v6, .packet_bytes = 65'488}, v6, 1));
    auto const refused = Sender::open({.to = v6, .packet_bytes = 65'489}, v6, 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_EQ(refused.error().detail,
              "packets of 65489 bytes do not fit the path to ::1: its MTU of 65536 leaves 65488 "
              "bytes, and packets are not fragmented");
    EXPECT_NE(refused.error().remedy.find("--packet-bytes 65488"), std::string::npos);
}

// No thread reads, so the socket's buffer fills up at some time: what it lost plus what it kept is
// all that was sent.
TEST(StreamLoopback, WhatTheSocketLosesIsToldExactly) {
    constexpr std::uint32_t bytes = 60'000;
    constexpr std::uint64_t count = 3000;
    Opening const opening{.run = "0000000000000063", .packet_bytes = bytes};
    auto const source = stream::Receiver::open({loopback, 0, {.chunks = 4}}, opening).value();
    auto const sender = open_sender(bytes, 99);
    ASSERT_TRUE(sender->aim(source->acceptance()));
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(sender->send(i, 1));
    Tally tally(99, bytes, Steady::now());
    while (source->take(tally).value() > 0) {
    }
    auto const lost = source->lost();
    ASSERT_TRUE(lost);
    EXPECT_GT(*lost, 0U);
    EXPECT_GT(tally.received(), 0U);
    EXPECT_EQ(tally.received() + *lost, count);
    EXPECT_EQ(tally.summary(Ending{.packets = count}).lost, *lost);
    EXPECT_EQ(source->lost(), lost);
}

}  // namespace
}  // namespace vfmgr::stream
