// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "api/http/http.hpp"
#include "api/http/listener.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds last_word_time{1};  // to write a pending answer

SourcePort source_of(Listen const& where) {
    auto const* const inherited = std::get_if<InheritedListen>(&where);
    return inherited ? inherited->source : SourcePort::any;
}

}  // namespace

struct Server::Impl {
    Impl(Limits given, OnBug report) : limits(given), on_bug(std::move(report)) {}
    // A connection whose callback threw ends at its deadline.
    void run_io() {
        while (!returns(on_bug, [this] { io.run(); })) continue;
    }

    Limits limits;
    OnBug on_bug;
    asio::io_context io{1};
    std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>(
        [this](std::function<void()> task) { asio::post(io, std::move(task)); });
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
        io.get_executor()};
    std::vector<std::unique_ptr<Listener>> listeners;       // io thread only
    std::vector<std::pair<TlsListen, Listener*>> with_tls;  // io thread only
    std::vector<Listener*> ended;                           // by unlisten(); io thread only
    std::thread thread;
    TurnedAway turned_away;                       // set before start()
    std::shared_ptr<std::promise<void>> emptied;  // set by finish(); io thread only

    void check_empty() {
        bool const empty = std::ranges::all_of(listeners, &Listener::empty);
        if (empty && emptied) std::exchange(emptied, nullptr)->set_value();
        if (!ended.empty()) asio::post(io, [this] { forget_ended(); });
    }
    // Not while one of them still is on the stack.
    void forget_ended() {
        for (auto* const listener : std::exchange(ended, {}))
            if (!listener->empty())
                ended.push_back(listener);
            else
                std::erase_if(listeners, [&](auto const& one) { return one.get() == listener; });
    }
};

Server::Server(Limits limits, OnBug on_bug)
    : impl_(std::make_unique<Impl>(limits, std::move(on_bug))) {}

Server::~Server() {
    stop();
}

Result<void> Server::listen(Listen const& where, Handler handler) {
    SslContext tls;
    if (auto const* secure = std::get_if<TlsListen>(&where)) {
        VFMGR_TRY(tls, server_context(*secure));
    }
    VFMGR_TRY(ListeningSocket socket, open_listening(where));
    auto listener = std::make_shared<std::unique_ptr<Listener>>(std::make_unique<Listener>(
        impl_->io, impl_->mailbox, impl_->limits, std::move(socket), source_of(where),
        std::move(tls), std::move(handler), impl_->turned_away,
        [impl = impl_.get()] { impl->check_empty(); }, impl_->on_bug));
    impl_->mailbox->post([this, listener, where] {
        if (auto const* const secure = std::get_if<TlsListen>(&where))
            impl_->with_tls.emplace_back(*secure, listener->get());
        impl_->listeners.push_back(std::move(*listener));
        impl_->listeners.back()->accept_next();
    });
    return {};
}

void Server::unlisten(TlsListen const& where) {
    impl_->mailbox->post([this, where] {
        auto const found =
            std::ranges::find(impl_->with_tls, where, &std::pair<TlsListen, Listener*>::first);
        if (found == impl_->with_tls.end()) return;
        impl_->ended.push_back(found->second);
        found->second->close();
        impl_->with_tls.erase(found);
        asio::post(impl_->io, [impl = impl_.get()] { impl->forget_ended(); });
    });
}

void Server::on_turned_away(std::function<void(Peer const&, Error const&)> report) {
    impl_->turned_away = std::move(report);
}

void Server::start() {
    if (impl_->thread.joinable()) return;
    impl_->thread = start_io_thread([impl = impl_.get()] { impl->run_io(); });
}

void Server::stop() {
    impl_->mailbox->post([this] {
        for (auto const& listener : impl_->listeners) listener->close();
    });
    impl_->mailbox->close();
    impl_->work.reset();
    if (impl_->thread.joinable())
        impl_->thread.join();
    else
        impl_->run_io();  // never started: closes what listen() opened
    impl_->listeners.clear();
}

void Server::finish(std::chrono::milliseconds patience) {
    if (impl_->thread.joinable()) {
        auto const emptied = std::make_shared<std::promise<void>>();
        auto const all_answered = emptied->get_future();
        impl_->mailbox->post([this, emptied] {
            impl_->emptied = emptied;
            for (auto const& listener : impl_->listeners) listener->finish(Finish::when_answered);
            impl_->check_empty();
        });
        if (all_answered.wait_for(patience) != std::future_status::ready) {
            impl_->mailbox->post([this] {
                for (auto const& listener : impl_->listeners) listener->finish(Finish::now);
            });
            static_cast<void>(all_answered.wait_for(last_word_time));
        }
    }
    stop();
}

void Server::cut(Which which) {
    impl_->mailbox->post([this, which = std::move(which)] {
        for (auto const& listener : impl_->listeners) listener->cut(which);
    });
}

Result<void> Server::renew(TlsListen const& files) {
    VFMGR_TRY(SslContext context, server_context(files));
    std::shared_ptr<SSL_CTX> const tls(std::move(context));
    impl_->mailbox->post([this, tls] {
        for (auto const& listener : impl_->listeners) listener->renew(tls.get());
    });
    return {};
}

void Server::limit(Limits const& limits) {
    impl_->limits = limits;
    impl_->mailbox->post([this, limits] {
        for (auto const& listener : impl_->listeners) listener->limit(limits);
    });
}

std::function<void(std::function<void()>)> Server::io_post() const {
    return
        [mailbox = impl_->mailbox](std::function<void()> work) { mailbox->post(std::move(work)); };
}

}  // namespace vfmgr::http
