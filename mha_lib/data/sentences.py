"""The sentences on which chapter 15 measures the real model's heads. All are written for this book.

PLAIN: sentences of many kinds. SENSE and AGREEMENT: pairs about a pronoun. Of `("... because it was too {weak|heavy}.", "it",
"crane", "crate")` the first word in braces makes the pronoun mean the first noun, the second word the second. In SENSE only
the sense of that word decides, as in a Winograd schema; in AGREEMENT the pronoun itself changes, and its number or gender
decides.

>>> len(PLAIN), len(SENSE), len(AGREEMENT)
(100, 40, 40)
>>> readings(SENSE[0])[1]
('The crane could not lift the crate because it was too heavy.', 'it', 'crate', 'crane')
"""

import re

PLAIN = tuple(
    """
    The ship left the harbour before dawn.
    My sister plays the violin in a small orchestra.
    Nobody knew where the old map came from.
    Three red apples rolled under the table.
    Why did the engine stop on the bridge?
    She folded the letter and put it in her pocket.
    The price of bread has doubled since last winter.
    A thin layer of ice covered the whole lake.
    If it rains tomorrow, we will stay at home.
    The committee rejected the plan by a single vote.
    Please close the window before you leave.
    Two engineers repaired the pump within an hour.
    The museum opens at nine and closes at five.
    He never drinks coffee after lunch.
    What a strange noise that was!
    The teacher who wrote this book lives next door.
    Bees carry pollen from flower to flower.
    Her answer was short, clear and wrong.
    The train to the coast was late again.
    I have not seen him since Monday.
    Water boils at a lower temperature in the mountains.
    The children built a tower of wooden blocks.
    Open the box carefully, because the glass is thin.
    Our neighbours sold their house to a young couple.
    The first chapter is longer than the second.
    Snow fell all night, and the roads were empty.
    Who left this umbrella on the chair?
    The doctor asked him to breathe slowly.
    A good knife should be sharp and light.
    They painted the kitchen yellow and the hall green.
    The river divides the town into two halves.
    It took him four years to learn Japanese.
    The judge listened, but the lawyer kept talking.
    Every morning the baker opens his shop at six.
    The moon was hidden behind a cloud.
    Send me the report when it is finished.
    The old clock in the tower no longer works.
    Most birds can fly, but some can only swim.
    The actor forgot his lines in the last scene.
    You should have told me the truth.
    The bus was full of tired workers.
    A small fire can destroy a large forest.
    The singer thanked the audience twice.
    Although he was ill, he finished the race.
    The password must contain a number and a letter.
    There are seven bridges across the canal.
    The cook added salt, pepper and a little lemon.
    His grandfather built clocks for the royal family.
    Does this road lead to the airport?
    The wind broke a branch of the cherry tree.
    The company hired forty people in March.
    She speaks three languages and reads five.
    The soup is too hot to eat.
    Light travels faster than sound.
    The farmer counted his sheep before sunset.
    We met in a cafe near the station.
    The results of the test surprised everyone.
    A spider was sitting in the corner of the room.
    The pilot landed the plane on a frozen field.
    Do not touch the wire while the lamp is on.
    The boy threw the ball over the wall.
    Without a key, we could not enter the cellar.
    The painting was stolen and never found.
    Summer is the best season for swimming.
    The letter arrived a week too late.
    Few people live on the northern side of the island.
    The dog barked at the postman every day.
    My phone fell into the bath.
    The theory explains why the sky is blue.
    He opened the door, and the cat ran out.
    The library lends books, films and tools.
    Nothing grows in this part of the desert.
    The girl with the green hat won the prize.
    Prices rise when demand is greater than supply.
    The carpenter measured the board three times.
    I would rather walk than wait.
    The machine sorts letters by colour and size.
    An empty bottle floated past the boat.
    The students were asked to write an essay.
    The bell rang, so the lesson ended.
    Her shoes were made of soft brown leather.
    The police closed the street for two hours.
    How many stars can you see tonight?
    The medicine works only if you take it daily.
    The gardener cut the grass and watered the roses.
    A stranger asked me the way to the theatre.
    The bridge was built in the year 1890.
    They will announce the winner on Friday.
    The coat is warm, but its sleeves are too short.
    Copper is a better conductor than iron.
    The guests danced until the band went home.
    The wolf followed the tracks through the snow.
    Tell your brother that dinner is ready.
    The new law protects small shops.
    Some questions have no simple answer.
    The elephant drank from the muddy pool.
    She wrote the number on the back of her hand.
    The storm passed, and the sea became calm.
    Neither the captain nor the crew saw the rock.
    Reading aloud helps you to remember a poem.
    """.strip().splitlines()
)
PLAIN = tuple(line.strip() for line in PLAIN)

SENSE = (
    ("The crane could not lift the crate because it was too {weak|heavy}.", "it", "crane", "crate"),
    ("The van could not enter the tunnel because it was too {tall|low}.", "it", "van", "tunnel"),
    ("The rope could not hold the piano because it was too {thin|big}.", "it", "rope", "piano"),
    ("The spoon scratched the pan because it was too {sharp|soft}.", "it", "spoon", "pan"),
    ("The book did not fit on the shelf because it was too {thick|narrow}.", "it", "book", "shelf"),
    ("The saw could not cut the log because it was too {blunt|hard}.", "it", "saw", "log"),
    ("The letter did not go into the envelope because it was too {large|small}.", "it", "letter", "envelope"),
    ("The horse could not jump over the fence because it was too {tired|high}.", "it", "horse", "fence"),
    ("The fox did not swim across the river because it was too {weak|deep}.", "it", "fox", "river"),
    ("The camel could not cross the desert because it was too {thirsty|vast}.", "it", "camel", "desert"),
    ("The dog did not eat the bone because it was too {full|old}.", "it", "dog", "bone"),
    ("The child did not climb the ladder because it was too {scared|steep}.", "it", "child", "ladder"),
    ("The ball broke the window because it was {heavy|fragile}.", "it", "ball", "window"),
    ("The cork did not fit the bottle because it was too {big|narrow}.", "it", "cork", "bottle"),
    ("The bird could not open the nut because it was too {feeble|solid}.", "it", "bird", "nut"),
    ("The truck sank into the road because it was too {heavy|muddy}.", "it", "truck", "road"),
    ("The player beat the champion because he was so {strong|careless}.", "he", "player", "champion"),
    ("The boy thanked the nurse because he had {recovered|helped}.", "he", "boy", "nurse"),
    ("The clerk called the plumber because he needed {help|work}.", "he", "clerk", "plumber"),
    ("The father carried the son because he was {strong|tired}.", "he", "father", "son"),
    ("The guard stopped the visitor because he was {strict|drunk}.", "he", "guard", "visitor"),
    ("The king trusted the servant because he was {naive|honest}.", "he", "king", "servant"),
    ("The lawyer warned the witness because he was {worried|lying}.", "he", "lawyer", "witness"),
    ("The singer envied the drummer because he was {poor|famous}.", "he", "singer", "drummer"),
    ("The thief ran from the farmer because he was {afraid|angry}.", "he", "thief", "farmer"),
    ("The tenant paid the owner because he {owed|demanded} the rent.", "he", "tenant", "owner"),
    ("The aunt taught the girl because she was {patient|curious}.", "she", "aunt", "girl"),
    ("The nurse fed the queen because she was {kind|ill}.", "she", "nurse", "queen"),
    ("The mother scolded the daughter because she was {strict|rude}.", "she", "mother", "daughter"),
    ("The actress forgave the maid because she was {generous|sorry}.", "she", "actress", "maid"),
    ("The wolf chased the rabbit because it was {hungry|tasty}.", "it", "wolf", "rabbit"),
    ("The cat hid from the dog because it was {timid|fierce}.", "it", "cat", "dog"),
    ("The hose could not reach the garden because it was too {short|distant}.", "it", "hose", "garden"),
    ("The lamp did not light the hall because it was too {dim|long}.", "it", "lamp", "hall"),
    ("The key did not turn in the lock because it was {bent|rusty} inside.", "it", "key", "lock"),
    ("The glue did not stick to the wall because it was too {old|wet}.", "it", "glue", "wall"),
    ("The bus could not pass the gate because it was too {wide|narrow}.", "it", "bus", "gate"),
    ("The plant outgrew the pot because it was so {healthy|tiny}.", "it", "plant", "pot"),
    ("The knife could not slice the bread because it was too {dull|stale}.", "it", "knife", "bread"),
    ("The drill did not enter the stone because it was too {weak|dense}.", "it", "drill", "stone"),
)  # fmt: skip

AGREEMENT = (
    ("The dog watched the birds until {it|they} fell asleep.", "dog", "birds"),
    ("The engineer greeted the students before {she|they} went home.", "engineer", "students"),
    ("The king wrote to the queen when {he|she} was ill.", "king", "queen"),
    ("The father met the mother after {he|she} had eaten.", "father", "mother"),
    ("The cat followed the boys because {it|they} wanted food.", "cat", "boys"),
    ("The teachers praised the girl because {they|she} liked the drawing.", "teachers", "girl"),
    ("The boy helped the woman although {he|she} was tired.", "boy", "woman"),
    ("The ship passed the islands before {it|they} disappeared in the fog.", "ship", "islands"),
    ("The nurses visited the man because {they|he} felt lonely.", "nurses", "man"),
    ("The brother phoned the sister when {he|she} heard the news.", "brother", "sister"),
    ("The horse overtook the carriages as {it|they} reached the hill.", "horse", "carriages"),
    ("The farmers sold the cow before {they|it} grew old.", "farmers", "cow"),
    ("The uncle thanked the aunt because {he|she} was grateful.", "uncle", "aunt"),
    ("The workers left the factory after {they|it} had closed.", "workers", "factory"),
    ("The lion ignored the monkeys because {it|they} felt safe.", "lion", "monkeys"),
    ("The prince danced with the princess until {he|she} got bored.", "prince", "princess"),
    ("The soldiers guarded the bridge until {they|it} fell.", "soldiers", "bridge"),
    ("The actor kissed the actress because {he|she} was happy.", "actor", "actress"),
    ("The girl fed the horses because {she|they} had waited long.", "girl", "horses"),
    ("The wolves circled the camp before {they|it} moved on.", "wolves", "camp"),
    ("The son argued with the daughter because {he|she} was jealous.", "son", "daughter"),
    ("The car hit the posts because {it|they} stood too close.", "car", "posts"),
    ("The guests waited for the singer because {they|she} had time.", "guests", "singer"),
    ("The man followed the lady because {he|she} knew the way.", "man", "lady"),
    ("The bear frightened the hikers when {it|they} woke up.", "bear", "hikers"),
    ("The pilots checked the plane before {they|it} took off.", "pilots", "plane"),
    ("The husband left the wife when {he|she} was young.", "husband", "wife"),
    ("The computer rejected the disks after {it|they} got wet.", "computer", "disks"),
    ("The parents hugged the boy because {they|he} had cried.", "parents", "boy"),
    ("The waiter served the duchess after {he|she} had sat down.", "waiter", "duchess"),
    ("The whale followed the boats until {it|they} turned north.", "whale", "boats"),
    ("The tourists photographed the tower before {they|it} vanished in the fog.", "tourists", "tower"),
    ("The grandfather taught the girl because {he|she} loved music.", "grandfather", "girl"),
    ("The storm reached the villages before {it|they} could be warned.", "storm", "villages"),
    ("The hunters lost the fox when {they|it} ran into the wood.", "hunters", "fox"),
    ("The monk warned the nun because {he|she} was worried.", "monk", "nun"),
    ("The goat watched the children while {it|they} ate.", "goat", "children"),
    ("The sailors admired the lighthouse as {they|it} came nearer.", "sailors", "lighthouse"),
    ("The gentleman called the waitress because {he|she} was polite.", "gentleman", "waitress"),
    ("The snake bit the boys because {it|they} had been careless.", "snake", "boys"),
)  # fmt: skip


def readings(pair):
    """The two sentences of a pair, each as (sentence, pronoun, the noun it means, the other noun).

    Errors: ValueError for what is no pair.
    """
    found = re.search(r"\{(\w+)\|(\w+)\}", pair[0]) if isinstance(pair, tuple) and len(pair) in (3, 4) else None
    if found is None:
        raise ValueError(f"pair must be (sentence with {{word|word}}, a pronoun or none, noun, noun), got {pair!r}")
    template, *pronoun, first, second = pair
    options = found.groups()
    nouns = ((first, second), (second, first))
    return tuple(
        (re.sub(r"\{.*\}", word, template), *(pronoun or [word]), *meant)
        for word, meant in zip(options, nouns, strict=True)
    )
