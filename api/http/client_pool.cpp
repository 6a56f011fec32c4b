// SPDX-License-Identifier: Apache-2.0
#include "api/http/client_pool.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>

#include "api/http/following.hpp"
#include "api/http/io_thread.hpp"
#include "api/http/pool.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;

struct ClientPool::Impl {
    Impl(PoolSettings given, OnBug report) : settings(std::move(given)), on_bug(std::move(report)) {
        thread = start_io_thread([this] {
            while (!returns(on_bug, [this] { io.run(); })) continue;
        });
    }
    [[nodiscard]] TlsTarget with_certificate(TlsTarget target) const {
        if (!target.certificate_file.empty() || !target.key_file.empty()) return target;
        target.certificate_file = settings.certificate_file;
        target.key_file = settings.key_file;
        return target;
    }

    PoolSettings const settings;
    OnBug const on_bug;
    asio::io_context io{1};
    std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>(
        [this](std::function<void()> task) { asio::post(io, std::move(task)); });
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
        io.get_executor()};
    Resolver resolver{mailbox};
    TlsContexts contexts;
    Pool pool{io, settings, resolver, contexts};
    Streams streams{io, settings, resolver, contexts};
    std::thread thread;
};

namespace {

bool is_repeatable(std::string const& method) {
    return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

}  // namespace

ClientPool::ClientPool(PoolSettings settings, OnBug on_bug)
    : impl_(std::make_unique<Impl>(std::move(settings), std::move(on_bug))) {}

ClientPool::~ClientPool() {
    stop();
}

void ClientPool::send(TlsTarget const& target, Request const& request,
                      std::chrono::milliseconds timeout, Done done) {
    auto text = request_text(request, target, {}, Afterwards::kept);
    if (!text) {
        impl_->mailbox->post(
            [done = std::move(done), error = std::move(text).error()] { done(fail(error)); });
        return;
    }
    auto const errand = std::make_shared<Errand>(impl_->io, impl_->with_certificate(target));
    errand->text = std::make_shared<std::string const>(std::move(*text));
    errand->of = AnswerReader::of(request);
    errand->changes = request.method != "GET" && request.method != "HEAD";
    errand->repeatable = is_repeatable(request.method);
    errand->ends = std::chrono::steady_clock::now() + timeout;
    errand->done = std::move(done);
    impl_->mailbox->post([impl = impl_.get(), errand] { impl->pool.take(errand); });
}

Result<Response> ClientPool::send(TlsTarget const& target, Request const& request,
                                  std::chrono::milliseconds timeout) {
    auto answer = std::make_shared<std::promise<Result<Response>>>();
    auto future = answer->get_future();
    send(target, request, timeout, [answer = std::move(answer)](Result<Response> result) {
        answer->set_value(std::move(result));
    });
    try {
        return future.get();
    } catch (std::future_error const&) {  // the request was dropped
        return fail(client_stops(target, Sent::no));
    }
}

Followed ClientPool::follow(TlsTarget const& target, Request const& request,
                            std::chrono::seconds silence_max, StreamCalls calls) {
    auto const stream = std::make_shared<Followed::Following>(impl_->streams, impl_->mailbox);
    stream->io_thread = impl_->thread.get_id();
    stream->target = impl_->with_certificate(target);
    stream->silence_max = silence_max;
    stream->calls = std::move(calls);
    auto text = request_text(request, target, {}, Afterwards::closed);
    if (text) stream->text = std::make_shared<std::string const>(std::move(*text));
    bool const begins = impl_->mailbox->post([impl = impl_.get(), stream, text = std::move(text)] {
        if (text)
            impl->streams.begin(stream);
        else
            impl->streams.refuse(stream, text.error());
    });
    if (!begins) stream->calls = {};
    return Followed(stream);
}

void ClientPool::stop() {
    impl_->mailbox->post([impl = impl_.get()] {
        impl->streams.stop();
        impl->pool.stop();
    });
    impl_->mailbox->close();
    impl_->work.reset();
    if (impl_->thread.joinable()) impl_->thread.join();
}

PoolCounts ClientPool::counts() const {
    auto const& requests = impl_->pool.numbers();
    auto const& streams = impl_->streams.numbers();
    return {.connections = requests.connections,
            .idle = requests.idle,
            .streams = streams.streams,
            .waiting = requests.waiting,
            .opened = requests.opened + streams.opened};
}

}  // namespace vfmgr::http
