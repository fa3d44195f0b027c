"use strict";
// Keeps the page up to date: when the server tells that something has changed, the page is asked for again, and what differs is replaced.
(() => {
	const state = document.getElementById("state");
	const say = (live, words) => {
		state.dataset.live = live;
		if (state.textContent !== words) state.textContent = words;
	};

	// become makes an element like another one, and keeps what is alike, with what the person has typed, chosen, unfolded and focused.
	const become = (old, next) => {
		if (old.isEqualNode(next) || old.dataset?.keep !== undefined) return;
		if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName) return old.replaceWith(next);
		if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = next.data);
		for (const { name } of [...old.attributes]) if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
		for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
		let at = old.firstChild;
		for (const child of [...next.childNodes]) {
			const same = child.id ? [...old.children].find(e => e.id === child.id) : at && !at.id && at.nodeName === child.nodeName ? at : null;
			if (!same) {
				old.insertBefore(child, at);
				continue;
			}
			while (at && at !== same && at.id && !next.querySelector("#" + CSS.escape(at.id))) at = remove(at);
			if (same === at) at = at.nextSibling;
			else old.insertBefore(same, at);
			become(same, child);
		}
		while (at) at = remove(at);
	};
	const remove = node => {
		const next = node.nextSibling;
		node.remove();
		return next;
	};

	// refresh asks for the page again, and takes at most a fifth of the server's time for it.
	let busy = false, again = false, note = "";
	const refresh = async () => {
		if (busy) return void (again = true);
		busy = true;
		const began = performance.now(), focused = document.activeElement;
		try {
			const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
			if (!answer.ok) throw new Error(answer.statusText);
			const next = new DOMParser().parseFromString(await answer.text(), "text/html");
			if (document.title !== next.title) document.title = next.title;
			become(document.querySelector("main"), next.querySelector("main"));
			if (!focused.isConnected) (document.getElementById("waits") ?? document.querySelector("main h1")).focus();
			say("on", note || "Live");
		} catch {
			say("off", "The server does not answer: what is shown may be old.");
		}
		setTimeout(() => {
			busy = false;
			if (!again) return;
			again = false;
			refresh();
		}, Math.max(200, 4 * (performance.now() - began)));
	};

	document.addEventListener("submit", async event => {
		event.preventDefault();
		const form = event.target, said = form.querySelector(".said");
		if (form.dataset.sent) return;
		form.dataset.sent = "now";
		said.textContent = "";
		try {
			const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
			const words = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".said")?.textContent;
			if (!answer.ok) said.textContent = words;
			else {
				note = words;
				setTimeout(() => (note = ""), 5000);
			}
		} catch {
			said.textContent = "The server does not answer: send it again.";
		}
		delete form.dataset.sent;
		refresh();
	});

	const changes = new EventSource(document.querySelector("main").dataset.live);
	changes.onmessage = refresh;
	changes.onerror = () => say("off", "The server does not answer: what is shown may be old.");
})();
