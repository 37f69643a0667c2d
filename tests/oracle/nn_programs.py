"""Programs as PyTorch's users write them. Each returns the losses of 20 steps; all that is random comes from one stream.

`test_nn_programs.py` runs this file as it is, and with the imports of turnout in place of those of torch.
"""

# mypy: ignore-errors
# ruff: noqa: B905
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, Dataset, TensorDataset

STEPS = 20


class Stream:
    """One stream of numbers of NumPy: initial weights, noise, masks and actions."""

    def __init__(self):
        self.random = np.random.default_rng(7)

    def normal(self, *shape, scale=1.0):
        return torch.tensor((self.random.standard_normal(shape) * scale).astype("float32"))

    def integers(self, high, *shape):
        return torch.tensor(self.random.integers(0, high, shape))

    def mask(self, x, p):
        return torch.tensor((self.random.random(tuple(x.shape)) >= p).astype("float32")) / (1 - p)

    def fill(self, *modules):
        for module in modules:
            with torch.no_grad():
                for p in module.parameters():
                    p.copy_(self.normal(*p.shape, scale=0.5 / math.sqrt(max(1, p.shape[-1] if p.dim() > 1 else 4))))
        return modules[0] if len(modules) == 1 else modules


class Dropped(nn.Module):
    """Dropout with masks of the stream."""

    def __init__(self, stream, p):
        super().__init__()
        self.stream, self.p = stream, p

    def forward(self, x):
        return x * self.stream.mask(x, self.p) if self.training else x


def classification(stream):
    images, labels = stream.normal(64, 1, 12, 12), stream.integers(5, 64)
    loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=False)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
            self.norm = nn.BatchNorm2d(6)
            self.conv2 = nn.Conv2d(6, 8, 3, stride=2)
            self.drop = Dropped(stream, 0.25)
            self.fc = nn.Linear(32, 5)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
            return self.fc(self.drop(torch.flatten(F.relu(self.conv2(x)), 1)))

    model = stream.fill(Net())
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.7)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses = []
    for _ in range(STEPS // 4):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    model.eval()
    with torch.no_grad():
        losses.append(criterion(model(images), labels).item())
    return losses


def language_model(stream):
    class Model(nn.Module):
        def __init__(self, vocabulary=20, width=16):
            super().__init__()
            self.width = width
            self.embedding = nn.Embedding(vocabulary, width)
            layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.decoder = nn.Linear(width, vocabulary)
            position = torch.arange(10).unsqueeze(1)
            rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
            table = torch.zeros(10, width)
            table[:, 0::2] = torch.sin(position * rate)
            table[:, 1::2] = torch.cos(position * rate)
            self.register_buffer("table", table)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.decoder(self.encoder(self.embedding(x) * math.sqrt(self.width) + self.table, mask=mask))

    model = stream.fill(Model())
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    text = stream.integers(20, 200)
    losses = []
    for step in range(STEPS):
        rows = torch.stack([text[i : i + 11] for i in range(step, step + 32, 8)])
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, 20), rows[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses


def vae(stream):
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(24, 16), nn.Linear(16, 4), nn.Linear(16, 4)
            self.decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 24), nn.Sigmoid())

        def forward(self, x):
            h = F.relu(self.fc1(x))
            mu, logvar = self.fc21(h), self.fc22(h)
            z = mu + stream.normal(*mu.shape) * torch.exp(0.5 * logvar)
            return self.decoder(z), mu, logvar

    model = stream.fill(VAE())
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    data = torch.sigmoid(stream.normal(32, 24) * 2)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        found, mu, logvar = model(data)
        loss = F.binary_cross_entropy(found, data, reduction="sum") - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def gan(stream):
    make = nn.Sequential(
        nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    judge = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Flatten(), nn.Linear(128, 1))
    stream.fill(make, judge)
    real = torch.tanh(stream.normal(8, 1, 8, 8))
    by_g = optim.Adam(make.parameters(), lr=2e-3, betas=(0.5, 0.999))
    by_d = optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(8), torch.zeros(8)
    losses = []
    for _ in range(STEPS):
        judge.zero_grad()
        fake = make(stream.normal(8, 6, 1, 1))
        d_real = criterion(judge(real).view(-1), ones)
        d_real.backward()
        d_fake = criterion(judge(fake.detach()).view(-1), zeros)
        d_fake.backward()
        by_d.step()
        make.zero_grad()
        g = criterion(judge(fake).view(-1), ones)
        g.backward()
        by_g.step()
        losses.append((d_real + d_fake + g).item())
    return losses


def actor_critic(stream):
    class Pole:
        """A pole on a cart, in a few lines."""

        def reset(self):
            self.state = stream.random.uniform(-0.05, 0.05, 4)
            return self.state

        def step(self, action):
            x, v, angle, speed = self.state
            force = 10.0 if action else -10.0
            turn = (9.8 * math.sin(angle) - math.cos(angle) * (force + 0.05 * speed**2 * math.sin(angle)) / 1.1) / 0.6
            self.state = np.array(
                [x + 0.02 * v, v + 0.02 * (force / 1.1 - 0.05 * turn), angle + 0.02 * speed, speed + 0.02 * turn]
            )
            return self.state, 1.0, bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21)

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.affine, self.action_head, self.value_head = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)

        def forward(self, x):
            x = F.relu(self.affine(x))
            return F.softmax(self.action_head(x), dim=-1), self.value_head(x)

    model, pole, losses = stream.fill(Policy()), Pole(), []
    optimizer = optim.Adam(model.parameters(), lr=3e-2)
    for _ in range(STEPS):
        state, saved, rewards = pole.reset(), [], []
        for _ in range(12):
            probs, value = model(torch.from_numpy(state).float())
            action = int(stream.random.random() > probs[0].item())
            saved.append((torch.log(probs[action]), value))
            state, reward, done = pole.step(action)
            rewards.append(reward)
            if done:
                break
        total, returns = 0, []
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        policy, values = [], []
        for (log_prob, value), target in zip(saved, returns):
            policy.append(-log_prob * (target - value.item()))
            values.append(F.smooth_l1_loss(value, torch.tensor([target])))
        optimizer.zero_grad()
        loss = torch.stack(policy).sum() + torch.stack(values).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def seq2seq(stream):
    class Attention(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.wa, self.ua, self.va = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)

        def forward(self, query, keys):
            scores = self.va(torch.tanh(self.wa(query) + self.ua(keys))).squeeze(2).unsqueeze(1)
            return torch.bmm(F.softmax(scores, dim=-1), keys)

    class Decoder(nn.Module):
        def __init__(self, width, size):
            super().__init__()
            self.embedding, self.attention = nn.Embedding(size, width), Attention(width)
            self.gru, self.out = nn.GRU(2 * width, width, batch_first=True), nn.Linear(width, size)

        def forward(self, outputs, hidden, target):
            token, logits = torch.zeros(target.shape[0], 1, dtype=torch.long), []
            for i in range(target.shape[1]):
                context = self.attention(hidden.permute(1, 0, 2), outputs)
                x, hidden = self.gru(torch.cat((self.embedding(token), context), dim=2), hidden)
                logits.append(self.out(x))
                token = target[:, i].unsqueeze(1)
            return F.log_softmax(torch.cat(logits, dim=1), dim=-1)

    words, encoder = nn.Embedding(12, 8), nn.GRU(8, 8, batch_first=True)
    decoder = Decoder(8, 12)
    stream.fill(words, encoder, decoder)
    optimizer = optim.Adam([*words.parameters(), *encoder.parameters(), *decoder.parameters()], lr=1e-2)
    source, target, losses = stream.integers(12, 6, 5), stream.integers(12, 6, 4), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        outputs, hidden = encoder(words(source))
        found = decoder(outputs, hidden, target)
        loss = nn.NLLLoss()(found.view(-1, 12), target.view(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def lstm_sequence(stream):
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm1, self.lstm2, self.linear = nn.LSTMCell(1, 8), nn.LSTMCell(8, 8), nn.Linear(8, 1)

        def forward(self, x):
            h, c, k, d = (torch.zeros(x.size(0), 8, dtype=torch.double) for _ in range(4))
            outputs = []
            for part in x.split(1, dim=1):
                h, c = self.lstm1(part, (h, c))
                k, d = self.lstm2(h, (k, d))
                outputs.append(self.linear(k))
            return torch.cat(outputs, dim=1)

    model = stream.fill(Sequence().double())
    wave = np.sin(np.arange(13)[None, :] / 2.0 + stream.random.random((5, 1)) * 6)
    x, y = torch.from_numpy(wave[:, :-1]), torch.from_numpy(wave[:, 1:])
    optimizer = optim.LBFGS(model.parameters(), lr=0.3, max_iter=2)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(x), y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        losses.append(optimizer.step(closure).item())
    return losses


def regression(stream):
    class Points(Dataset):
        def __init__(self):
            self.x = stream.normal(40, 3)

        def __len__(self):
            return len(self.x)

        def __getitem__(self, i):
            return {"x": self.x[i], "y": self.x[i].sum().sin()}

    model = nn.Sequential(nn.Linear(3, 10), nn.Tanh(), nn.LayerNorm(10), nn.Linear(10, 1), nn.Flatten(0, 1))
    stream.fill(model)
    slow, fast = list(model[0].parameters()), [p for layer in list(model)[1:] for p in layer.parameters()]
    optimizer = optim.RMSprop([{"params": slow, "lr": 1e-3}, {"params": fast}], lr=1e-2, momentum=0.5)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[5e-3, 2e-2], total_steps=STEPS + 1)
    average = optim.swa_utils.AveragedModel(model)
    losses = []
    for _ in range(STEPS // 5):
        for batch in DataLoader(Points(), batch_size=8):
            loss = F.huber_loss(model(batch["x"]), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            average.update_parameters(model)
            losses.append(loss.item())
    losses.append(average(torch.ones(2, 3)).sum().item())
    return losses


def nano_gpt(stream, compute=None):
    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.c_attn, self.c_proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

        def forward(self, x):
            b, t, c = x.size()
            q, k, v = (u.view(b, t, self.heads, c // self.heads).transpose(1, 2) for u in self.c_attn(x).split(c, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
            return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width, 2), nn.LayerNorm(width)
            self.mlp = nn.ModuleDict(
                {"c_fc": nn.Linear(width, 4 * width), "gelu": nn.GELU(), "c_proj": nn.Linear(4 * width, width)}
            )

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp.c_proj(self.mlp.gelu(self.mlp.c_fc(self.ln_2(x))))

    class GPT(nn.Module):
        def __init__(self, size=16, width=16, context=8):
            super().__init__()
            self.transformer = nn.ModuleDict({
                "wte": nn.Embedding(size, width), "wpe": nn.Embedding(context, width), "drop": Dropped(stream, 0.1),
                "h": nn.ModuleList([Block(width) for _ in range(2)]), "ln_f": nn.LayerNorm(width),
            })  # fmt: skip
            self.lm_head = nn.Linear(width, size, bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self._init_weights)

        def _init_weights(self, module):
            if isinstance(module, nn.Linear) and module.bias is not None:
                torch.nn.init.zeros_(module.bias)

        def forward(self, index, targets):
            x = self.transformer.drop(self.transformer.wte(index) + self.transformer.wpe(torch.arange(index.size(1))))
            for block in self.transformer.h:
                x = block(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    model = stream.fill(GPT())
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    groups = [
        {"params": [p for p in named.values() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    text, losses = stream.integers(16, 300), []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 + 0.5 * (1 + math.cos(math.pi * step / STEPS)) * 9e-3
        for _ in range(2):
            places = stream.random.integers(0, 290, 4)
            x, y = (torch.stack([text[i + d : i + d + 8] for i in places]) for d in (0, 1))
            loss = model(x, y) / 2
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return losses


def makemore(stream):
    table, w1, w2 = stream.normal(27, 4), stream.normal(12, 20, scale=0.4), stream.normal(20, 27, scale=0.1)
    gain, bias, b2 = torch.ones(1, 20), torch.zeros(1, 20), torch.zeros(27)
    parameters = [table, w1, w2, gain, bias, b2]
    for p in parameters:
        p.requires_grad = True
    x, y, losses = stream.integers(27, 100, 3), stream.integers(27, 100), []
    running = torch.zeros(1, 20)
    for step in range(STEPS):
        ix = stream.integers(100, 16)
        h = table[x[ix]].view(-1, 12) @ w1
        mean, std = h.mean(0, keepdim=True), h.std(0, keepdim=True)
        with torch.no_grad():
            running = 0.9 * running + 0.1 * mean
        logits = torch.tanh(gain * (h - mean) / std + bias) @ w2 + b2
        loss = F.cross_entropy(logits, y[ix])
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -(0.1 if step < 10 else 0.01) * p.grad
        losses.append(loss.log10().item())
    return [*losses, running.sum().item()]


def per_sample_gradients(stream):
    model = stream.fill(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)))
    params = {k: v.detach() for k, v in model.named_parameters()}
    x, y, losses = stream.normal(10, 5), stream.integers(3, 10), []

    def compute_loss(params, sample, target):
        found = functional_call(model, params, (sample.unsqueeze(0),))
        return F.cross_entropy(found, target.unsqueeze(0))

    each = vmap(grad(compute_loss), in_dims=(None, 0, 0))
    for _ in range(STEPS):
        grads = each(params, x, y)
        norm = sum(g.flatten(1).pow(2).sum(1) for g in grads.values()).sqrt()
        clip = (0.5 / norm).clamp(max=1.0)
        for name, g in grads.items():
            g = torch.einsum("n,n...->...", clip, g) / len(x) + stream.normal(*g.shape[1:], scale=0.01)
            params[name] = params[name] - 0.5 * g
        losses.append(F.cross_entropy(functional_call(model, params, (x,)), y).item())
    return losses


def data_parallel(stream, device="cpu"):
    model = stream.fill(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x, y, losses = stream.normal(24, 6), stream.normal(24, 1), []
    for _ in range(STEPS):
        parts, total = [], 0.0
        for xs, ys in zip(x.chunk(3), y.chunk(3)):  # each replica has a part of the batch
            loss = F.mse_loss(model(xs.to(device)), ys.to(device))
            parts.append(torch.autograd.grad(loss, list(model.parameters())))
            total += loss.item() / 3
        for p, *grads in zip(model.parameters(), *parts):
            p.grad = torch.stack(grads).mean(0)
        optimizer.step()
        losses.append(total)
    return losses


def mixed_precision(stream):
    model = stream.fill(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
    optimizer, scaler = optim.SGD(model.parameters(), lr=0.05, momentum=0.9), torch.amp.GradScaler("cpu", init_scale=1024.0)
    x, y, losses = stream.normal(32, 16), stream.integers(4, 32), []
    for _ in range(STEPS):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            found = model(x)
            assert found.dtype == torch.bfloat16
            loss = F.cross_entropy(found.float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


PROGRAMS = [
    classification, language_model, vae, gan, actor_critic, seq2seq, lstm_sequence, regression, nano_gpt, makemore,
    per_sample_gradients, data_parallel, mixed_precision,
]  # fmt: skip
