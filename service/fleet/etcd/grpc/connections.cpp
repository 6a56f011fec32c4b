// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/grpc/connections.hpp"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/generic_stub.h>
#include <openssl/pem.h>

#include <algorithm>
#include <random>

#include "api/os/file.hpp"
#include "api/os/handle.hpp"
#include "api/os/random.hpp"
#include "service/fleet/etcd/answers.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int answer_bytes_max = 64 << 20;  // a page of 1,000 keys of 64 KiB

std::vector<std::string> shuffled(std::vector<std::string> endpoints) {
    std::mt19937_64 random(random_number());
    std::ranges::shuffle(endpoints, random);
    return endpoints;
}

// Each failure is returned to its caller; gRPC's own lines on standard error would repeat them.
void silence_grpc() {
    static std::once_flag once;
    std::call_once(once, [] { gpr_set_log_function([](gpr_log_func_args*) {}); });
}

grpc::ChannelArguments arguments(EtcdPaces const& paces) {
    grpc::ChannelArguments all;
    // A channel shares nothing with an earlier one: it reads the certificate again.
    all.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // No proxy of the environment, and nothing of DNS beyond addresses.
    all.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    all.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    // What is sent again is decided here, where it is known what may be.
    all.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    all.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(paces.ping_every.count()));
    all.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(paces.ping_answer.count()));
    // A quiet watch has no data for hours. Without calls etcd takes no pings.
    all.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    all.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
    all.SetMaxReceiveMessageSize(answer_bytes_max);
    return all;
}

Result<std::string> text_of(std::string const& file) {
    if (auto text = read_file(file)) return *text;
    Error error{Problem::unavailable, fmt::format("can't read {}, which etcd's TLS needs", file),
                fmt::format("ls -l {}", file)};
    error.causes = {errno_cause("open " + file, errno)};
    return fail(std::move(error));
}

// nullopt: it is not, or it can't be told.
std::optional<std::string> expired_at(std::string const& file) {
    auto const text = read_file(file);
    if (!text) return std::nullopt;
    Handle<BIO, BIO_free> const in(BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
    Handle<X509, X509_free> const certificate(
        in ? PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr) : nullptr);
    if (!certificate) return std::nullopt;
    auto const* const end = X509_get0_notAfter(certificate.get());
    if (X509_cmp_current_time(end) >= 0) return std::nullopt;
    std::tm parts{};
    if (ASN1_TIME_to_tm(end, &parts) != 1) return std::nullopt;
    return to_rfc3339(std::chrono::system_clock::from_time_t(timegm(&parts)));
}

// Asks for nothing that matters, to get the text of what a channel failed with. It does not wait
// for the channel.
grpc::Status harmless_call(Connection const& connection) {
    grpc::GenericStub stub(connection.channel);
    grpc::ClientContext context;
    context.set_deadline(grpc_time(Clock::now() + milliseconds(200)));
    grpc::CompletionQueue queue;
    grpc::ByteBuffer answer;
    grpc::Status status;
    auto const call = stub.PrepareUnaryCall(&context, "/etcdserverpb.Maintenance/Status",
                                            grpc::ByteBuffer(), &queue);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool fine = false;
    queue.Next(&tag, &fine);
    return status;
}

}  // namespace

gpr_timespec grpc_time(Deadline deadline) {
    using std::chrono::duration_cast;
    auto const left = std::max(Clock::duration::zero(), deadline - Clock::now());
    auto const from_now =
        gpr_time_from_micros(duration_cast<std::chrono::microseconds>(left).count(), GPR_TIMESPAN);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), from_now);
}

Connections::Connections(EtcdMembers settings, std::vector<std::string> endpoints, bool encrypted)
    : settings_(std::move(settings)),
      encrypted_(encrypted),
      endpoints_(shuffled(std::move(endpoints))) {
    silence_grpc();
}

Result<Connection> Connections::open(std::string const& endpoint) const {
    auto credentials = grpc::InsecureChannelCredentials();
    if (encrypted_) {
        grpc::SslCredentialsOptions options;
        VFMGR_TRY(options.pem_root_certs, text_of(settings_.ca_file));
        VFMGR_TRY(options.pem_cert_chain, text_of(settings_.certificate_file));
        VFMGR_TRY(options.pem_private_key, text_of(settings_.key_file));
        credentials = grpc::SslCredentials(options);
    }
    return Connection{
        grpc::CreateCustomChannel("dns:///" + endpoint, credentials, arguments(settings_.paces)),
        endpoint};
}

Result<Connection> Connections::current() {
    std::lock_guard const lock(mutex_);
    bool const usable = current_.channel &&
                        (!connected_ || current_.channel->GetState(false) == GRPC_CHANNEL_READY);
    if (!usable) {
        VFMGR_TRY(current_, open(endpoints_[index_]));
        connected_ = false;
    }
    return current_;
}

Error Connections::refused(Connection const& connection) const {
    auto const status = harmless_call(connection);
    Error error{Problem::unavailable,
                fmt::format("etcd at {} can't be connected to", connection.endpoint),
                fmt::format("etcdctl --endpoints {} endpoint health", connection.endpoint)};
    error.causes = {{"connect to " + connection.endpoint,
                     std::string(grpc_code_name(status.error_code())), status.error_message()}};
    // The member only ends the connection, and does not say why.
    if (auto const when = encrypted_ ? expired_at(settings_.certificate_file) : std::nullopt) {
        error.detail = fmt::format(
            "etcd at {} ended the connection: the certificate in {}, which "
            "this daemon shows to it, expired at {}",
            connection.endpoint, settings_.certificate_file, *when);
        error.remedy = "put a renewed certificate there; it is read without a restart";
    }
    return error;
}

Result<void> Connections::await(Connection const& connection, Deadline deadline) const {
    for (;;) {
        auto const state = connection.channel->GetState(true);
        if (state == GRPC_CHANNEL_READY) return {};
        if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN ||
            !connection.channel->WaitForStateChange(state, grpc_time(deadline)))
            return fail(refused(connection));
    }
}

Result<Connection> Connections::get(Deadline deadline) {
    Error all{Problem::unavailable, "", ""};
    for (std::size_t left = endpoints_.size(); left > 0; --left) {
        VFMGR_TRY(auto connection, current());
        auto const now = Clock::now();
        auto const share = (deadline - now) / static_cast<int>(left);
        auto done =
            await(connection, now + std::min<Clock::duration>(share, settings_.paces.connect));
        if (done) {
            std::lock_guard const lock(mutex_);
            if (current_.channel == connection.channel) connected_ = true;
            return connection;
        }
        failed(connection);
        all.detail = std::move(done.error().detail);
        all.remedy = std::move(done.error().remedy);
        all.causes.push_back(std::move(done.error().causes.front()));
    }
    if (endpoints_.size() > 1)
        all.detail = fmt::format("none of the {} members of etcd can be connected to; the last: {}",
                                 endpoints_.size(), all.detail);
    return fail(std::move(all));
}

Result<Connection> Connections::get_to(std::string const& endpoint, Deadline deadline) const {
    VFMGR_TRY(auto connection, open(endpoint));
    VFMGR_CHECK(await(connection, std::min(deadline, Clock::now() + settings_.paces.connect)));
    return connection;
}

void Connections::failed(Connection const& connection) {
    std::lock_guard const lock(mutex_);
    if (current_.channel != connection.channel) return;
    current_ = {};
    connected_ = false;
    index_ = (index_ + 1) % endpoints_.size();
}

}  // namespace vfmgr::fleet
